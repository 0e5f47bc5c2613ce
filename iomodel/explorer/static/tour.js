// A tour in steps: each is a state with one sentence and one question.

class Tour {
  constructor(host, steps, go) {
    this.buttons = steps.map(({ title }, i) => element("button", { type: "button", onclick: () => this.show(i) }, `${i + 1}. ${title}`));
    this.sentence = element("p", { class: "sentence" });
    this.question = element("p", { class: "question" });
    this.steps = steps;
    this.go = go;
    host.replaceChildren(element("div", { class: "controls", role: "group", "aria-label": "Steps of the tour" }, ...this.buttons), this.sentence, this.question);
  }

  show(number) {
    const { sentence, question, state } = this.steps[number];
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
    this.sentence.textContent = sentence;
    this.question.textContent = `Question: ${question}`;
    this.go(state);
    say(`${sentence} Question: ${question}`);
  }
}
