// A tour in steps: each is a state of the page, a panel to look at, one sentence, one question, and its answer.

class Tour {
  constructor(frame, host, steps, go) {
    this.frame = frame;
    this.steps = steps;
    this.go = go;
    this.buttons = steps.map(({ title }, i) => element("button", { type: "button", onclick: () => this.show(i) }, `${i + 1}. ${title}`));
    this.sentence = element("p", { class: "sentence" });
    this.question = element("p", { class: "question" });
    this.answer = element("p", { class: "reveal unseen", "aria-live": "polite" });
    this.reveal = element("button", { type: "button", id: "tour-answer", onclick: () => this.tell() }, "Show the answer");
    this.next = element("button", { type: "button", id: "tour-next", onclick: () => this.show((this.at + 1) % steps.length) }, "Next");
    this.end = element("button", { type: "button", id: "tour-end", onclick: () => this.close() }, "End the tour");
    this.link = element("a", { id: "tour-link" }, "Link to this step");
    this.more = element("div", { class: "controls", hidden: true }, this.reveal, this.next, this.end, this.link);
    host.replaceChildren(element("div", { class: "controls", role: "group", "aria-label": "Steps of the tour" }, ...this.buttons), this.sentence, this.question, this.answer, this.more);
  }

  // The step of a link, counted from 1; return its fault, or null.
  open(text) {
    const number = integer("tour", text, 1n, BigInt(this.steps.length));
    this.show(Number(number) - 1);
    return null;
  }

  show(number) {
    const { sentence, question, state, panel } = this.steps[number];
    this.at = number;
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
    this.sentence.textContent = sentence;
    this.question.textContent = `Question: ${question}`;
    this.answer.textContent = this.steps[number].answer; // its room is kept, so that nothing moves when it is shown
    this.answer.classList.add("unseen");
    this.reveal.textContent = "Show the answer";
    this.more.hidden = false;
    this.next.textContent = number + 1 < this.steps.length ? "Next" : "Start again";
    this.link.href = `#tour=${number + 1}`;
    this.frame.classList.add("on");
    this.go(state);
    this.outline(byId(panel).closest("section"));
    say(`${sentence} Question: ${question}`);
  }

  // Scroll to a panel below the strip of the tour, and outline it.
  outline(panel) {
    for (const other of document.querySelectorAll(".toured")) other.classList.remove("toured");
    panel?.classList.add("toured");
    if (!panel) return;
    const strip = this.frame.getBoundingClientRect().height + 16;
    // At once: a smooth scroll ends where it stands as soon as a button of the strip is pressed.
    window.scrollTo({ top: panel.getBoundingClientRect().top + window.scrollY - strip, behavior: "instant" });
  }

  tell() {
    const hidden = this.answer.classList.toggle("unseen");
    this.reveal.textContent = hidden ? "Show the answer" : "Hide the answer";
  }

  close() {
    this.frame.classList.remove("on");
    this.outline(null);
    this.buttons.forEach((button) => button.setAttribute("aria-pressed", "false"));
  }
}
