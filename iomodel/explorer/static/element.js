// A custom element that shows panels of the explorer in another page:
// <iomodel-call src="explorer.html" call="q_len=8192&mask=causal" show="time,animation"></iomodel-call>
if (!customElements.get("iomodel-call")) {
  customElements.define("iomodel-call", class extends HTMLElement {
    static observedAttributes = ["src", "call", "show"];

    connectedCallback() {
      this.frame = document.createElement("iframe");
      this.frame.title = this.title || "iomodel explorer: a call of attention";
      this.frame.setAttribute("sandbox", "allow-scripts");
      this.frame.style.cssText = "display: block; width: 100%; height: 420px; border: 0";
      this.heard = ({ source, data }) => {
        if (source !== this.frame.contentWindow || !data?.iomodel) return;
        const { height, call } = data.iomodel;
        if (height) this.frame.style.height = `${height}px`;
        if (typeof call === "string") this.dispatchEvent(new CustomEvent("call", { detail: call }));
      };
      window.addEventListener("message", this.heard);
      this.turn();
      this.replaceChildren(this.frame);
    }

    disconnectedCallback() {
      window.removeEventListener("message", this.heard);
    }

    attributeChangedCallback() {
      if (this.frame) this.turn();
    }

    // Turn the frame to the call; a page that is open already keeps its data.
    turn() {
      const show = this.getAttribute("show") ?? "time,animation";
      const link = [this.getAttribute("call"), `show=${show}`].filter(Boolean).join("&");
      this.frame.src = `${this.getAttribute("src") ?? "iomodel-explorer.html"}#${link}`;
    }
  });
}
