// The field of the search: a combobox whose list has the hits. The search itself is loaded at the first focus.
import type { Hit } from "./search";

/** Makes the form of the header work. */
export function startSearch(form: HTMLFormElement): void {
  const field = form.querySelector("input")!;
  const list = form.querySelector("ul")!;
  const status = form.querySelector("output")!;
  let find: ((question: string) => Hit[]) | undefined;
  let chosen = -1; // the number of the marked hit

  form.hidden = false;

  function close(): void {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    mark(-1);
  }

  function mark(n: number): void {
    chosen = n;
    const hits = [...list.querySelectorAll("a")];
    hits.forEach((hit, i) => hit.setAttribute("aria-selected", String(i === n)));
    const hit = hits[n];
    if (hit) field.setAttribute("aria-activedescendant", hit.id);
    else field.removeAttribute("aria-activedescendant");
    hit?.scrollIntoView({ block: "nearest" });
  }

  function show(): void {
    const question = field.value.trim();
    if (!find || question === "") {
      status.value = "";
      return close();
    }
    const hits = find(field.value);
    list.replaceChildren(...hits.map((hit, n) => {
      const item = document.createElement("li");
      item.setAttribute("role", "none");
      const link = document.createElement("a");
      link.id = `hit-${n}`;
      link.setAttribute("role", "option");
      link.href = hit.address;
      link.tabIndex = -1;
      const note = document.createElement("span");
      note.textContent = hit.page === hit.heading ? hit.group : `${hit.group} · ${hit.page}`;
      link.append(hit.heading, note);
      item.append(link);
      return item;
    }));
    status.value = hits.length === 0 ? "Nothing found" : `${hits.length} hits`;
    list.hidden = hits.length === 0;
    field.setAttribute("aria-expanded", String(hits.length > 0));
    mark(hits.length > 0 ? 0 : -1);
  }

  function go(): void {
    const link = list.hidden ? null : list.querySelectorAll("a")[chosen];
    if (!link) return;
    close();
    field.blur();
    location.assign(link.href);
  }

  field.addEventListener("focus", async () => {
    find ??= (await import("./search")).find;
    if (document.activeElement === field) show();
  });
  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    const last = list.children.length - 1;
    if (event.key === "Escape") {
      if (list.hidden) field.blur();
      else close();
    } else if (!list.hidden && event.key === "ArrowDown") mark(chosen < last ? chosen + 1 : 0);
    else if (!list.hidden && event.key === "ArrowUp") mark(chosen > 0 ? chosen - 1 : last);
    else return;
    event.preventDefault();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
  form.addEventListener("focusout", (event) => {
    if (!form.contains(event.relatedTarget as Element | null)) close();
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.focus();
  });
}
