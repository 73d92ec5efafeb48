"use strict";
{
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const plots = [...document.querySelectorAll("[data-figure]")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isTouched = matchMedia("(pointer: coarse)").matches; // there, what moves over a chart scrolls the page
  const PAPER = 660;
  const timelines = plots.filter((plot) => plot.closest("#timelines"));
  let isSmoothed = true;

  // Colours are those of the style sheet, by their names there.
  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function colored(value, key) {
    if (key === "colorscale") {
      const names = value.split(",").flatMap((name) => color(name).split(/,(?![^(]*\))/));
      return names.map((each, place) => [place / (names.length - 1), each.trim()]);
    }
    if (typeof value === "string" && value.startsWith("--")) return color(value);
    if (Array.isArray(value)) {
      return typeof value[0] === "string" || typeof value[0] === "object" ? value.map((each) => colored(each)) : value;
    }
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, colored(each, name)]));
  }

  function layoutOf(id) {
    const axis = { gridcolor: color("--line"), linecolor: color("--line"), tickcolor: color("--line") };
    const given = colored(figures[id].layout);
    return {
      ...given,
      template: {
        layout: {
          font: { family: "system-ui, sans-serif", size: 12, color: color("--faint") },
          paper_bgcolor: "rgba(0,0,0,0)",
          plot_bgcolor: "rgba(0,0,0,0)",
          hoverlabel: { bgcolor: color("--card"), bordercolor: color("--line"), font: { color: color("--ink") }, align: "left" },
          xaxis: axis,
          yaxis: axis,
        },
      },
      dragmode: isTouched ? false : "zoom",
      xaxis: { ...given.xaxis, fixedrange: isTouched },
    };
  }

  // Without medians the lines below them are drawn as strong as others.
  function dataOf(id) {
    const data = figures[id].data;
    if (isSmoothed) return colored(data);
    const lines = data.filter((trace) => trace.meta !== "median");
    const several = lines.filter((trace) => trace.meta === "smoothed").length > 1 || lines.some((trace) => trace.showlegend);
    const strong = (trace) => ({ ...trace, opacity: 1, line: { ...trace.line, width: 1.5 }, showlegend: several });
    return colored(lines.map((trace) => (trace.meta === "smoothed" ? strong(trace) : trace)));
  }

  const settings = { responsive: true, displayModeBar: false }; // a mode bar lies over the chart: `tools` stand above it

  // What can be done with a chart, for those who have a mouse.
  function tools(plot) {
    const id = plot.dataset.figure;
    const bar = document.createElement("div");
    bar.className = "tools";
    const range = figures[id].layout.xaxis?.range;
    const whole = () => Plotly.relayout(plot, range ? { "xaxis.range": [...range] } : { "xaxis.autorange": true });
    const save = () => Plotly.downloadImage(plot, { format: "png", filename: id, scale: 2 });
    for (const [name, act] of [["Show all steps", whole], ["Save as image", save]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", act);
      bar.append(button);
    }
    (plot.closest(".scroll") ?? plot).before(bar);
  }

  // With a width it is as wide as paper, else as the page.
  async function draw(plot, width) {
    const id = plot.dataset.figure;
    const isNew = !plot.dataset.drawn;
    const layout = { ...layoutOf(id), autosize: !width, width };
    if (!isNew) layout.xaxis = { ...layout.xaxis, range: plot.layout.xaxis.range };
    plot.dataset.drawn = "yes";
    await Plotly.react(plot, dataOf(id), layout, settings);
    if (!isNew) return;
    if (!isTouched) tools(plot);
    plot.on("plotly_click", (event) => {
      const finding = event.points.map((point) => point.customdata).find((each) => typeof each === "string");
      if (finding) show(finding);
    });
    if (timelines.includes(plot)) plot.on("plotly_relayout", (change) => zoomed(plot, change));
  }

  const isShown = (plot) => plot.offsetParent !== null;
  const drawShown = () => Promise.all(plots.filter((plot) => isShown(plot) && !plot.dataset.drawn).map((plot) => draw(plot)));
  const redraw = (width) => Promise.all(plots.filter((plot) => plot.dataset.drawn).map((plot) => draw(plot, width)));

  // The charts over the steps are zoomed together.
  function zoomed(plot, change) {
    const range = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (range[0] === undefined) return;
    for (const other of timelines.filter((each) => each !== plot)) {
      const now = other.layout.xaxis.range;
      if (now[0] !== range[0] || now[1] !== range[1]) Plotly.relayout(other, { "xaxis.range": [...range] });
    }
  }

  function show(id) {
    const finding = document.getElementById(id);
    finding.closest("details")?.setAttribute("open", "");
    location.hash = id;
    finding.focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const view = event.target.closest("[data-shows]");
    if (view) {
      for (const button of document.querySelectorAll("[data-shows]")) {
        button.setAttribute("aria-pressed", String(button === view));
        document.getElementById(button.dataset.shows).parentElement.hidden = button !== view;
      }
      drawShown();
    }
    const smooth = event.target.closest("[data-smooth]");
    if (smooth) {
      isSmoothed = smooth.dataset.smooth === "true";
      for (const button of document.querySelectorAll("[data-smooth]")) {
        button.setAttribute("aria-pressed", String(button === smooth));
      }
      redraw();
    }
    const step = event.target.closest("[data-step]");
    const [first] = timelines;
    if (step && first) {
      const [begin, end] = figures[first.dataset.figure].layout.xaxis.range;
      const reach = Math.max((end - begin) / 20, 5);
      const at = Number(step.dataset.step);
      Plotly.relayout(first, { "xaxis.range": [at - reach, at + reach] });
      document.getElementById("timelines").scrollIntoView();
    }
  });
  document.addEventListener("toggle", drawShown, true);
  dark.addEventListener("change", () => redraw());
  addEventListener("beforeprint", () => {
    root.classList.add("print");
    redraw(PAPER);
  });
  addEventListener("afterprint", () => {
    root.classList.remove("print");
    redraw();
  });
  drawShown();
}
