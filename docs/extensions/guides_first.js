// How the search box ranks: Sphinx's own points, a quarter of them for the reference and a half for proofs and papers, so that guides come first.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, title, anchor, description, points]) => {
    if (page.startsWith("generated/")) return points / 4;
    return page.startsWith("core/") || page.startsWith("papers/") || page.startsWith("project/c") ? points / 2 : points;
  },
};
