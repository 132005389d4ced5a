// What moves in the report: themes, sorting, the flame graph and the timeline. No library, no network.
//
// Everything that came from a recording is only ever set as textContent or drawn as text.
"use strict";

(() => {
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const button = (text, title, run) => {
    const element = make("button", "", text);
    element.type = "button";
    element.title = title;
    element.addEventListener("click", run);
    return element;
  };
  // As units.rs writes times: in the unit and with the decimals that suit `beside`, and with more of them where times a
  // `step` apart must be told from each other.
  const time = (ns, beside = ns, step = 0) => {
    const [unit, name, decimals] =
      beside < 1e3 ? [1, "ns", () => 0]
      : beside < 999_500 ? [1e3, "µs", (value) => (value < 9.995 ? 2 : value < 99.95 ? 1 : 0)]
      : beside < 99_950_000 ? [1e6, "ms", (value) => (value < 9.995 ? 2 : value < 99.95 ? 1 : 0)]
      : [1e9, "s", (value) => (value < 99.995 ? 3 : 1)];
    const finer = step > 0 ? Math.ceil(-Math.log10(step / unit)) : 0;
    const finest = Math.round(Math.log10(unit));
    return `${(ns / unit).toFixed(clamp(Math.max(decimals(beside / unit), finer), 0, finest))} ${name}`;
  };
  const percent = (part) =>
    part <= 0 ? "0%" : part < 0.0005 ? "<0.1%" : `${(part * 100).toFixed(part < 0.0095 ? 1 : 0)}%`;
  const counted = (count, one, several) => `${count} ${count === 1 ? one : several}`;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const dataOf = (widget) => JSON.parse(widget.querySelector("script").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const legend = (data, used) => {
    const list = make("div", "legend");
    data.legend.forEach(([name, words], index) => {
      if (!used.has(index)) return;
      const entry = make("span");
      entry.append(make("i", `c-${name}`), document.createTextNode(words));
      list.append(entry);
    });
    return list;
  };

  // What is folded in may never be looked at: it is built when it is opened.
  const whenShown = (widget, build) => {
    const fold = widget.closest("details:not([open])");
    if (fold) fold.addEventListener("toggle", () => whenShown(widget, build), { once: true });
    else build(widget);
  };

  // On a telephone only what comes first is open: the rest is found by its headings.
  if (window.matchMedia("(max-width: 560px)").matches) {
    const folds = [...document.querySelectorAll("details.fold")];
    const isFirst = (fold, at) => at === 0 || (at === 1 && folds[0].contains(fold));
    folds.filter((fold, at) => !isFirst(fold, at)).forEach((fold) => fold.removeAttribute("open"));
  }

  // Themes -----------------------------------------------------------------------------------------------------------
  const redraws = [];
  const theme = document.getElementById("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const showTheme = () => {
    theme.textContent = isDark() ? "☀ light" : "☾ dark";
    theme.title = isDark() ? "Show the page in light colours" : "Show the page in dark colours";
    theme.hidden = false;
    redraws.forEach((redraw) => redraw());
  };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  dark.addEventListener("change", showTheme);

  // Tables -----------------------------------------------------------------------------------------------------------
  for (const table of document.querySelectorAll("table.sorts")) {
    const headings = [...table.tHead.rows[0].cells];
    const value = (row, column) => {
      const cell = row.cells[column];
      return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
    };
    headings.forEach((heading, column) => {
      const click = heading.querySelector("button");
      if (!click) return;
      click.addEventListener("click", () => {
        // Numbers are wanted largest first, names in their order.
        const first = heading.classList.contains("n") ? "descending" : "ascending";
        const other = first === "descending" ? "ascending" : "descending";
        const order = heading.getAttribute("aria-sort") === first ? other : first;
        headings.forEach((one) => one.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const compare = (a, b) => {
          const [x, y] = [value(a, column), value(b, column)];
          return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
        };
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort(compare));
      });
    });
  }

  // The flame graph --------------------------------------------------------------------------------------------------
  const ROW = 18;
  const LEAST_WIDTH = 0.0015; // of the whole: two pixels on a wide screen; zooming shows what is narrower
  const LEAST_COVERED = 0.05; // of the width: deeper rows would be blank but for a few columns, and are seen by zooming into them
  let flames = 0;

  // Parents, totals and shares by state, from the depth-first list.
  const growTree = (tree) => {
    const count = tree.depth.length;
    const nodes = [];
    const path = [];
    for (let index = 0; index < count; index += 1) {
      const depth = tree.depth[index];
      const parent = depth > 0 ? path[depth - 1] : null;
      const node = { index, depth, parent, children: [], ns: 0, states: new Map(), name: tree.name[index], from: 0 };
      if (parent) parent.children.push(node);
      path[depth] = node;
      nodes.push(node);
    }
    for (let index = count - 1; index >= 0; index -= 1) {
      const node = nodes[index];
      const add = (state, ns) => node.states.set(state, (node.states.get(state) || 0) + ns);
      if (tree.ns[index] > 0) add(tree.class[index], tree.ns[index]);
      node.ns += tree.ns[index];
      node.children.forEach((child) => {
        node.ns += child.ns;
        child.states.forEach((ns, state) => add(state, ns));
      });
    }
    nodes.forEach((node) => {
      let from = node.from;
      node.children.forEach((child) => {
        child.from = from;
        from += child.ns;
      });
    });
    return nodes;
  };

  const gradient = (data, node) => {
    const parts = [...node.states].sort(([a], [b]) => a - b);
    if (parts.length === 1) return `var(--${data.legend[parts[0][0]][0]})`;
    let from = 0;
    const stops = parts.map(([state, ns]) => {
      const to = from + (ns / node.ns) * 100;
      const stop = `var(--${data.legend[state][0]}) ${from.toFixed(2)}% ${to.toFixed(2)}%`;
      from = to;
      return stop;
    });
    return `linear-gradient(90deg, ${stops.join(", ")})`;
  };

  const flame = (widget) => {
    const data = dataOf(widget);
    const id = `flame-${(flames += 1)}`;
    const trees = data.trees.map((tree) => ({ label: tree.label, nodes: growTree(tree) }));
    let nodes = trees[0].nodes;
    let zoomed = nodes[0];
    let current = nodes[0];
    let search = "";
    let hits = new Set();

    const frames = make("div", "frames");
    frames.tabIndex = 0;
    frames.setAttribute("role", "tree");
    frames.setAttribute("aria-label", "Flame graph. Arrows move, Enter zooms, Escape zooms out.");
    const deeper = make("p", "dim deeper");
    const status = make("p", "status");
    status.setAttribute("aria-live", "polite");
    const nameOf = (node) => data.names[node.name];

    const describe = (node) => {
      const whole = nodes[0].ns;
      const states = [...node.states].sort((a, b) => b[1] - a[1]);
      const shares = states.map(([state, ns]) => `${data.legend[state][1]} ${time(ns)}`).join(", ");
      status.textContent = `${nameOf(node)}: ${time(node.ns)}, ${percent(node.ns / whole)} of ${time(whole)}. ${shares}`;
    };

    // Too narrow frames are not drawn, and cannot be pointed at.
    const point = () => {
      const frame = document.getElementById(`${id}-${current.index}`);
      if (frame) frames.setAttribute("aria-activedescendant", frame.id);
      else frames.removeAttribute("aria-activedescendant");
      return frame;
    };

    const draw = () => {
      const shown = [];
      const covered = [];
      const show = (node, left, width, above) => {
        covered[node.depth] = (covered[node.depth] || 0) + width;
        shown.push([node, left, width, above]);
      };
      for (let node = zoomed.parent; node; node = node.parent) show(node, 0, 1, true);
      const below = (node) => {
        const width = node.ns / zoomed.ns;
        if (width < LEAST_WIDTH) return;
        show(node, (node.from - zoomed.from) / zoomed.ns, width, false);
        node.children.forEach(below);
      };
      below(zoomed);
      // What was found or chosen is shown however deep it is.
      const wanted = shown.filter(([node]) => node === current || hits.has(node.index)).map(([node]) => node.depth);
      const least = Math.max(zoomed.depth + 1, ...wanted) + 1;
      let rows = covered.length;
      while (rows > least && covered[rows - 1] < LEAST_COVERED) rows -= 1;
      const left = counted(covered.length - rows, "deeper row, a narrow one", "deeper rows, narrow ones");
      deeper.textContent = rows < covered.length ? `${left}: click into a column to see more.` : "";
      const list = shown.filter(([node]) => node.depth < rows).map(([node, left, width, above]) => {
        const frame = make("div", above ? "above" : width < 0.004 ? "narrow" : "");
        frame.id = `${id}-${node.index}`;
        frame.setAttribute("role", "treeitem");
        frame.setAttribute("aria-level", String(node.depth + 1));
        frame.style.left = `${(left * 100).toFixed(4)}%`;
        frame.style.width = `${(width * 100).toFixed(4)}%`;
        frame.style.top = `${node.depth * ROW}px`;
        frame.style.background = gradient(data, node);
        if (width > 0.012 || above) frame.textContent = nameOf(node);
        frame.title = `${nameOf(node)} ${time(node.ns)}`;
        if (hits.has(node.index)) frame.classList.add("hit");
        if (node === current) frame.classList.add("current");
        frame.dataset.node = String(node.index);
        return frame;
      });
      frames.classList.toggle("searching", search !== "");
      frames.style.height = `${rows * ROW}px`;
      frames.replaceChildren(...list);
      point();
      reset.disabled = zoomed === nodes[0];
    };

    const select = (node) => {
      current = node;
      describe(node);
      const before = frames.querySelector(".current");
      if (before) before.classList.remove("current");
      const frame = point();
      if (frame) frame.classList.add("current");
      else draw();
    };
    const zoom = (node) => {
      zoomed = node;
      current = node;
      draw();
      describe(node);
    };
    const reset = button("whole", "Show the whole graph (Escape)", () => zoom(nodes[0]));
    const find = (text) => {
      search = text.trim().toLowerCase();
      hits = new Set();
      let sum = 0;
      if (search) {
        const within = (node, inside) => {
          const hit = nameOf(node).toLowerCase().includes(search);
          if (hit) hits.add(node.index);
          // What lies below a hit is part of it already.
          if (hit && !inside) sum += node.ns;
          node.children.forEach((child) => within(child, inside || hit));
        };
        within(nodes[0], false);
      }
      draw();
      const match = counted(hits.size, "frame matches", "frames match");
      if (search) status.textContent = `${match}: ${time(sum)}, ${percent(sum / nodes[0].ns)} of the time`;
      else describe(current);
    };
    const input = make("input");
    input.type = "search";
    input.placeholder = "search functions";
    input.setAttribute("aria-label", "Search the flame graph");
    input.addEventListener("input", () => find(input.value));

    frames.addEventListener("click", (event) => {
      const frame = event.target.closest("[data-node]");
      if (frame) zoom(nodes[Number(frame.dataset.node)]);
    });
    frames.addEventListener("mouseover", (event) => {
      const frame = event.target.closest("[data-node]");
      if (frame) describe(nodes[Number(frame.dataset.node)]);
    });
    frames.addEventListener("keydown", (event) => {
      const siblings = current.parent ? current.parent.children : [current];
      const at = siblings.indexOf(current);
      const largest = () => current.children.reduce((a, b) => (b.ns > a.ns ? b : a), current.children[0]);
      const moves = {
        ArrowDown: () => current.children.length && select(largest()),
        ArrowUp: () => current.parent && select(current.parent),
        ArrowLeft: () => select(siblings[Math.max(at - 1, 0)]),
        ArrowRight: () => select(siblings[Math.min(at + 1, siblings.length - 1)]),
        Enter: () => zoom(current),
        " ": () => zoom(current),
        Escape: () => zoom(nodes[0]),
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });

    const controls = make("div", "controls");
    if (trees.length > 1) {
      const choice = make("select");
      choice.setAttribute("aria-label", "Whose time");
      trees.forEach((tree, index) => choice.append(new Option(tree.label, String(index))));
      choice.addEventListener("change", () => {
        nodes = trees[Number(choice.value)].nodes;
        zoomed = nodes[0];
        current = nodes[0];
        find(input.value);
      });
      controls.append(choice);
    }
    controls.append(input, reset);
    const used = new Set(trees.flatMap((tree) => [...tree.nodes[0].states.keys()]));
    widget.replaceChildren(controls, frames, deeper, status, legend(data, used));
    draw();
    describe(nodes[0]);
  };
  document.querySelectorAll(".widget.flame").forEach((widget) => whenShown(widget, flame));

  // The timeline -----------------------------------------------------------------------------------------------------
  const LANE = 20; // a row, and the bars in it
  const BAR = 15;
  const LEAST_LABEL = 28; // a bar that is narrower has no words in it
  const AXIS = 18;
  const PATH = 44; // the lane of the critical path
  // Numbers of a stretch that is drawn as it was, and of a sum: see timeline.rs.
  const [LANE_OF, FROM, LENGTH, STATE, WORDS, LOW, HIGH, STRETCH] = [0, 1, 2, 3, 4, 5, 6, 7];
  const SUM = 4;

  // The stretches of one lane, in the order of time. Those of the path are all in one.
  class Stretches {
    constructor(kept, summed) {
      this.kept = kept;
      this.summed = summed;
      this.longest = 0;
      for (let at = LENGTH; at < kept.length; at += STRETCH) this.longest = Math.max(this.longest, kept[at]);
    }

    static byLane(data, lanes) {
      const [kept, summed] = [lanes.map(() => []), lanes.map(() => [])];
      for (let at = 0; at < data.kept.length; at += STRETCH) {
        kept[data.kept[at]].push(...data.kept.slice(at, at + STRETCH));
      }
      for (let at = 0; at < data.summed.length; at += SUM) summed[data.summed[at]].push(...data.summed.slice(at, at + SUM));
      return lanes.map((_, lane) => new Stretches(kept[lane], summed[lane]));
    }

    static ofPath(data) {
      const rows = [];
      for (let at = 0; at < data.kept.length; at += STRETCH) rows.push(data.kept.slice(at, at + STRETCH));
      rows.sort((a, b) => a[FROM] - b[FROM] || a[LOW] - b[LOW]);
      // Sums of several threads in the same part of the time lie one on the other.
      const sums = [];
      for (let at = 0; at < data.summed.length; at += SUM) sums.push(data.summed.slice(at, at + SUM));
      sums.sort((a, b) => a[1] - b[1]);
      return new Stretches(rows.flat(), sums.flat());
    }

    // The first stretch that may reach beyond a time.
    firstAfter(at) {
      let [low, high] = [0, this.kept.length / STRETCH];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.kept[middle * STRETCH + FROM] + this.longest < at) low = middle + 1;
        else high = middle;
      }
      return low * STRETCH;
    }

    // The stretch at a time and a height.
    at(when, height) {
      const { kept } = this;
      for (let at = this.firstAfter(when); at < kept.length && kept[at + FROM] <= when; at += STRETCH) {
        const inside = kept[at + FROM] + kept[at + LENGTH] >= when;
        if (inside && kept[at + LOW] <= height && kept[at + HIGH] >= height) return at;
      }
      return -1;
    }
  }

  // The distance between ticks: 1, 2 or 5 times a power of ten, so that at most `most` of them stand in a time.
  const roundStep = (span, most) => {
    const least = span / most;
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
  };

  const timeline = (widget) => {
    const data = dataOf(widget);
    const lanes = data.lanes;
    const path = Stretches.ofPath(data.path);
    const threads = Stretches.byLane(data.threads, lanes);
    const top = path.kept.length > 0 ? PATH : 0;
    let from = 0;
    let to = data.end;
    const canvas = make("canvas");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    const what = top ? "The critical path, and below it" : "Timeline of";
    const below = counted(lanes.length, "lane", "lanes");
    canvas.setAttribute("aria-label", `${what} ${below}. Plus and minus zoom, arrows move, Escape shows all.`);
    const status = make("p", "status", "");
    status.setAttribute("aria-live", "polite");
    const rows = [];
    lanes.forEach((lane, index) => (rows[lane.row] ||= []).push(index));
    const height = AXIS + top + rows.length * LANE;
    const yOf = (lane) => AXIS + top + lane.row * LANE;
    // How far a label may reach: to the end of its bar, or, where there is none, to the next lane of the row.
    const reach = lanes.map((lane) => {
      const after = rows[lane.row].map((one) => lanes[one].born).filter((born) => born > lane.born);
      return lane.thin ? Math.min(Infinity, ...after) : lane.ended;
    });
    const tip = make("div", "tip");
    tip.hidden = true;
    canvas.style.height = `${height}px`;

    const draw = () => {
      const width = canvas.clientWidth;
      const scale = window.devicePixelRatio || 1;
      canvas.width = width * scale;
      canvas.height = height * scale;
      const context = canvas.getContext("2d");
      context.scale(scale, scale);
      const colours = data.legend.map(([name]) => colour(name));
      const [ink, dim, onCpu, line, inBar] = ["ink", "dim", "on-cpu", "line", "frame-ink"].map(colour);
      const x = (ns) => clamp(((ns - from) / (to - from)) * width, 0, width);
      const box = (begin, end, y, tall, fill) => {
        if (end < from || begin > to) return;
        context.fillStyle = fill;
        context.fillRect(x(begin), y, Math.max(x(end) - x(begin), 0.5), tall);
      };
      // Short stretches: as high as their share of the part of the time that they are in, from the bottom up.
      const sums = ({ summed }, y, tall) => {
        const part = data.end / data.parts;
        let [last, below] = [-1, 0];
        for (let at = 0; at < summed.length; at += SUM) {
          const [, number, state, ns] = summed.slice(at, at + SUM);
          if (number !== last) below = 0;
          last = number;
          const share = Math.min(ns / part, 1 - below);
          box(number * part, (number + 1) * part, y + tall * (1 - below - share), tall * share, colours[state]);
          below += share;
        }
      };
      const stretches = ({ kept }, first, y, tall, each) => {
        for (let at = first; at < kept.length && kept[at + FROM] < to; at += STRETCH) {
          const [begin, end] = [kept[at + FROM], kept[at + FROM] + kept[at + LENGTH]];
          const [low, high] = [kept[at + LOW] / data.height, kept[at + HIGH] / data.height];
          box(begin, end, y + tall * (1 - high), tall * (high - low), colours[kept[at + STATE]]);
          if (each) each(kept[at + LANE_OF], begin, end);
        }
      };

      context.clearRect(0, 0, width, height);
      context.font = "11px system-ui, sans-serif";
      context.fillStyle = dim;
      const step = roundStep(to - from, Math.max(2, Math.floor(width / 110)));
      for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
        context.fillStyle = line;
        context.fillRect(x(at), 0, 1, height);
        const words = time(at, to, step);
        if (x(at) + 4 + context.measureText(words).width > width) continue;
        context.fillStyle = dim;
        context.fillText(words, x(at) + 4, 11);
      }
      // In the part of the bar that is seen, cut where the bar ends.
      const label = (lane, index, y) => {
        const [begin, end] = [x(lane.born), x(reach[index])];
        if (end - begin < LEAST_LABEL || lane.ended < from || lane.born > to) return;
        context.save();
        context.beginPath();
        context.rect(begin, y, end - begin - 2, BAR);
        context.clip();
        context.fillStyle = lane.thin ? dim : inBar;
        context.fillText(lane.label, begin + 3, y + 11);
        context.restore();
      };
      lanes.forEach((lane, index) => {
        const y = yOf(lane);
        if (lane.thin) box(lane.born, lane.ended, y + LANE - 3, 1, line);
        else box(lane.born, lane.ended, y, BAR, onCpu);
        sums(threads[index], y, BAR);
        stretches(threads[index], threads[index].firstAfter(from), y, BAR);
        label(lane, index, y);
      });
      if (top) {
        sums(path, AXIS, top - 6);
        stretches(path, path.firstAfter(from), AXIS, top - 6, (lane, begin, end) => {
          if (lane >= 0) box(begin, end, yOf(lanes[lane]) + LANE - 4, 2, ink);
        });
      }
      whole.disabled = from === 0 && to === data.end;
    };

    const show = (begin, end) => {
      const span = clamp(end - begin, Math.min(1000, data.end), data.end);
      from = clamp(begin, 0, data.end - span);
      to = from + span;
      draw();
      const shown = [from, to, data.end].map((ns) => time(ns, to, span / 100));
      status.textContent = `${shown[0]} to ${shown[1]} of ${shown[2]}`;
    };
    const zoom = (factor, around = (from + to) / 2) => {
      show(around - (around - from) * factor, around + (to - around) * factor);
    };
    const move = (part) => show(from + (to - from) * part, to + (to - from) * part);
    const whole = button("whole", "Show all of the time (Escape)", () => show(0, data.end));
    const controls = make("div", "controls");
    controls.append(
      button("+", "Zoom in (+)", () => zoom(0.5)),
      button("−", "Zoom out (-)", () => zoom(2)),
      button("←", "Earlier", () => move(-0.25)),
      button("→", "Later", () => move(0.25)),
      whole,
    );

    // An instant, as finely as it is drawn.
    const instant = (ns) => time(ns, to, (to - from) / 1000);
    const said = ({ kept }, at) => `${data.words[kept[at + WORDS]]} for ${time(kept[at + LENGTH])}, from ${instant(kept[at + FROM])}`;
    const timeAt = (event) => from + ((to - from) * event.offsetX) / canvas.clientWidth;
    const describe = (event) => {
      const when = timeAt(event);
      if (top && event.offsetY >= AXIS && event.offsetY < AXIS + top) {
        const found = path.at(when, (1 - (event.offsetY - AXIS) / (top - 6)) * data.height);
        const lane = found < 0 ? undefined : lanes[path.kept[found + LANE_OF]];
        const words = found < 0 ? "stretches too short to be drawn" : said(path, found);
        status.textContent = `critical path at ${instant(when)}${lane ? `, in ${lane.name}` : ""}: ${words}`;
        return;
      }
      const row = rows[Math.floor((event.offsetY - AXIS - top) / LANE)] || [];
      const index = row.find((one) => when >= lanes[one].born && when <= lanes[one].ended);
      if (index === undefined) {
        status.textContent = instant(when);
        return;
      }
      const lane = lanes[index];
      const found = threads[index].at(when, 1);
      const words = found >= 0 ? said(threads[index], found) : lane.otherwise;
      status.textContent = `${lane.name} at ${instant(when)}: ${words}`;
    };
    // The same beside the pointer, never beyond the widget.
    const follow = (event) => {
      tip.textContent = status.textContent;
      tip.hidden = false;
      tip.style.left = `${clamp(event.offsetX + 14, 0, Math.max(canvas.clientWidth - tip.offsetWidth, 0))}px`;
      tip.style.top = `${event.offsetY + 18}px`;
    };
    canvas.addEventListener("pointerleave", () => {
      tip.hidden = true;
    });
    let pressed = null;
    canvas.addEventListener("pointerdown", (event) => {
      pressed = { x: event.offsetX, from, to };
      canvas.setPointerCapture(event.pointerId);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, () => {
        pressed = null;
      });
    }
    canvas.addEventListener("pointermove", (event) => {
      if (pressed) {
        const moved = ((pressed.x - event.offsetX) / canvas.clientWidth) * (pressed.to - pressed.from);
        show(pressed.from + moved, pressed.to + moved);
      } else {
        describe(event);
        follow(event);
      }
    });
    canvas.addEventListener("dblclick", (event) => zoom(0.25, timeAt(event)));
    canvas.addEventListener(
      "wheel",
      (event) => {
        // Without a key the wheel scrolls the page.
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, timeAt(event));
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => {
      const keys = {
        "+": () => zoom(0.5),
        "=": () => zoom(0.5),
        "-": () => zoom(2),
        ArrowLeft: () => move(-0.25),
        ArrowRight: () => move(0.25),
        Home: () => show(0, to - from),
        End: () => show(data.end - (to - from), data.end),
        Escape: () => show(0, data.end),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });

    const used = new Set();
    for (const { kept, summed } of [path, ...threads]) {
      for (let index = STATE; index < kept.length; index += STRETCH) used.add(kept[index]);
      for (let index = 2; index < summed.length; index += SUM) used.add(summed[index]);
    }
    const colours = legend(data, used);
    if (lanes.some((lane) => !lane.thin)) {
      const running = make("span");
      const sample = make("i");
      sample.style.background = "var(--on-cpu)";
      running.append(sample, document.createTextNode("on a CPU"));
      colours.prepend(running);
    }
    const drawing = make("div", "drawing");
    drawing.append(canvas, tip);
    widget.replaceChildren(controls, drawing, status, colours);
    status.textContent = "Drag to move, double-click or Shift and the wheel to zoom.";
    redraws.push(draw);
    new ResizeObserver(draw).observe(canvas);
    draw();
  };
  document.querySelectorAll(".widget.timeline").forEach((widget) => whenShown(widget, timeline));

  // Links ------------------------------------------------------------------------------------------------------------
  const unfold = (hash) => {
    const target = hash && document.getElementById(hash.slice(1));
    if (!target) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    const within = target.querySelector(":scope > details.fold");
    if (within) within.open = true;
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link) unfold(link.hash);
  });
  unfold(location.hash);

  // Printing ---------------------------------------------------------------------------------------------------------
  // On paper all is light and open, but for the cases of a study, which are too many, and rows of next to nothing: these are
  // printed where somebody has opened them.
  let before = null;
  window.addEventListener("beforeprint", () => {
    before = { theme: document.documentElement.dataset.theme, opened: [...document.querySelectorAll("details:not([open], .of-case, .minor)")] };
    before.opened.forEach((one) => one.setAttribute("open", ""));
    document.documentElement.dataset.theme = "light";
    showTheme();
  });
  window.addEventListener("afterprint", () => {
    if (!before) return;
    before.opened.forEach((one) => one.removeAttribute("open"));
    if (before.theme) document.documentElement.dataset.theme = before.theme;
    else delete document.documentElement.dataset.theme;
    before = null;
    showTheme();
  });

  showTheme();
})();
