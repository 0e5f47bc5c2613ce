// The first picture, and then the rest of the page.

// Panels that another page shows in a frame, by their names in a link, with an element of each.
const PANELS = {
  scene: "scene", answer: "answered", call: "what", time: "time", traffic: "traffic", footprint: "footprint", map: "map",
  animation: "animation", roofline: "roofline", counts: "moved", formulas: "formulas",
};

// Leave the named panels, if a link names some.
function leavePanels(names) {
  document.body.classList.toggle("framed", names.length > 0);
  for (const one of document.querySelectorAll(".chosen")) one.classList.remove("chosen");
  for (const name of names) byId(PANELS[name])?.closest("section").classList.add("chosen");
}

// The names of panels in a link.
function panelsOf(link) {
  const given = link.split("&").find((pair) => pair.startsWith("show="));
  return given === undefined ? [] : given.slice("show=".length).replaceAll("%2C", ",").split(",");
}

// Start the first picture, which needs none of the data of the calls.
function watch(data) {
  const [slow, fast] = data.sides;
  byId("watch-words").textContent = `One head, ${grouped(data.rows)} tokens, ${data.width} wide, ${data.dtype}, in ${data.tiles} x ${data.tiles} tiles, over one bus. ${slow.title} stores and loads the scores S and P; ${fast.title} keeps them on chip and moves ${(slow.total / fast.total).toFixed(1)} times fewer bytes, although it reads K and V ${data.tiles} times. The number in a tile is how often it has moved.`;
  const scene = new Scene(byId("scene"), data);
  document.documentElement.dataset.painted = String(Math.round(performance.now()));
  return scene;
}

// Draw the first picture, and then the rest of the page, once a frame has shown it.
async function begin(data) {
  leavePanels(panelsOf(location.hash.slice(1)));
  const scene = watch(data);
  await new Promise((shown) => { setTimeout(shown, 16); });
  await new Function("scene", "unpacked", "leavePanels", "PANELS", unpacked("code"))(scene, unpacked, leavePanels, PANELS);
}
