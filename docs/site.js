// A field above the list of rules that leaves only the rows with all of its words.
document.addEventListener("DOMContentLoaded", () => {
  const first = document.querySelector("h2[id^='ta0xx']");
  if (!first) return;
  const tables = [];
  for (let node = first; node && !node.id.startsWith("the-rules-of-other"); node = node.nextElementSibling)
    if (node.querySelector?.("tbody") || node.matches("h2"))
      node.matches("h2") ? tables.push([node, []]) : tables.at(-1)[1].push(node);
  const field = document.createElement("input");
  field.type = "search";
  field.className = "rule-filter";
  field.placeholder = "Filter: TA6, optimizer, error ...";
  field.setAttribute("aria-label", "Filter the rules");
  const count = document.createElement("p");
  count.setAttribute("aria-live", "polite");
  first.before(field, count);
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [heading, bodies] of tables) {
      let here = 0;
      for (const row of bodies.flatMap((body) => [...body.querySelectorAll("tbody tr")])) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        here += !row.hidden;
      }
      for (const node of [heading, ...bodies]) node.hidden = !here;
      shown += here;
    }
    count.textContent = words.length ? `${shown} rules` : "";
  };
  field.addEventListener("input", show);
});
