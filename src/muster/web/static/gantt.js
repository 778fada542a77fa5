// Pictures with rows of marks, below [data-arrows]: each is one stop of the Tab key. Arrows go from mark to mark,
// left and right in the row, up and down to what is nearest in the next row that has any. Marks are links, so
// Enter opens one.

const marksIn = (place) => [...place.querySelectorAll("a.span")];

function settle(picture, stop) {
  const marks = marksIn(picture);
  const one = stop ?? marks.find((mark) => mark.getAttribute("tabindex") === "0") ?? marks[0];
  for (const mark of marks) {
    const wanted = mark === one ? "0" : "-1";
    if (mark.getAttribute("tabindex") !== wanted) mark.setAttribute("tabindex", wanted);
  }
}

const settleAll = () => document.querySelectorAll("[data-arrows]").forEach((picture) => settle(picture));

const middle = (mark) => {
  const box = mark.getBoundingClientRect();
  return box.x + box.width / 2;
};

function beside(mark, step) {
  const row = marksIn(mark.closest(".row"));
  return row[row.indexOf(mark) + step];
}

function across(mark, step) {
  const x = middle(mark);
  const rows = [...mark.closest("[data-arrows]").querySelectorAll(".row")];
  for (let at = rows.indexOf(mark.closest(".row")) + step; rows[at]; at += step) {
    const marks = marksIn(rows[at]);
    if (marks.length) return marks.reduce((a, b) => (Math.abs(middle(b) - x) < Math.abs(middle(a) - x) ? b : a));
  }
  return null;
}

const MOVES = {
  ArrowLeft: (mark) => beside(mark, -1),
  ArrowRight: (mark) => beside(mark, 1),
  ArrowUp: (mark) => across(mark, -1),
  ArrowDown: (mark) => across(mark, 1),
};

document.addEventListener("keydown", (event) => {
  const mark = event.target.closest?.("[data-arrows] a.span");
  if (!mark || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") mark.closest("[tabindex='0']:not(a)")?.focus();
  if (!MOVES[event.key]) return;
  event.preventDefault();
  const to = MOVES[event.key](mark);
  to?.focus();
  to?.scrollIntoView({ block: "nearest", inline: "nearest" });
});
document.addEventListener("focusin", (event) => {
  const mark = event.target.closest?.("[data-arrows] a.span");
  if (mark) settle(mark.closest("[data-arrows]"), mark);
});
document.addEventListener("muster:followed", settleAll);
settleAll();
