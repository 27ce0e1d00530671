-- title: What reviewers decided
-- section: robustness
-- note: Scores that a person decided about, beside the judges' own. No rate above has a decision in it; the findings say where decisions turn one.
SELECT s.axis AS "Score", count(*) AS "Decisions", sum(s.value <> e.value) AS "Changed",
       avg(s.value - e.value) AS "Mean change"
FROM score s JOIN score e ON e.item = s.item AND e.axis = s.axis AND e.kind = 'ensemble'
WHERE s.kind = 'review' AND s.axis <> 'identity'
GROUP BY s.axis
ORDER BY min(s.rowid)
