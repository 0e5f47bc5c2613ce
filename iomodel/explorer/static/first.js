// Run the code of the first picture, which starts the rest, or tell what failed.

async function first() {
  const { code, data } = unpacked("picture");
  await new Function("data", "unpacked", code)(data, unpacked);
}

first().catch((error) => {
  const fault = document.getElementById("fault");
  fault.hidden = false;
  fault.textContent = `The page could not start: ${error.message}`;
  throw error;
});
