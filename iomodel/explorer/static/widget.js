// The view of a notebook's widget: the custom element on a page that the widget holds as text.
export default {
  render({ model, el }) {
    const address = URL.createObjectURL(new Blob([model.get("page")], { type: "text/html" }));
    const shown = document.createElement("iomodel-call");
    shown.setAttribute("src", address);
    const turn = () => ["call", "show"].forEach((name) => shown.setAttribute(name, model.get(name)));
    turn();
    let told = null; // the call that the page told of needs no turn
    model.on("change:call", () => { if (model.get("call") !== told) turn(); });
    shown.addEventListener("call", ({ detail }) => {
      told = detail;
      model.set("call", detail);
      model.save_changes();
    });
    el.append(shown);
    return () => URL.revokeObjectURL(address);
  },
};
