// The page in a frame of another page: the panels that it shows, and what it tells.

const framed = () => document.body.classList.contains("framed");

// Show the panels that a link names; FieldError for a name without a panel.
function inFrame(text) {
  const names = text.split(","), wrong = names.find((name) => !has(PANELS, name));
  if (wrong !== undefined) throw new FieldError("show", `${shown(wrong)} given; allowed: ${Object.keys(PANELS).join(", ")}`);
  leavePanels(names);
  tellFrame.sized ??= new ResizeObserver(() => tellFrame({ height: Math.ceil(document.body.getBoundingClientRect().height) }));
  tellFrame.sized.observe(document.body);
}

// Tell the embedding page of the height or of the call.
function tellFrame(news) {
  if (framed() && window.parent !== window) window.parent.postMessage({ iomodel: news }, "*");
}
