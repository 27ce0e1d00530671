-- title: How the judges agree
-- section: robustness
-- note: Scores that both judges gave. Kappa is weighted by squared distance: 1 is full agreement, 0 what chance gives.
SELECT p.axis AS "Score", count(*) AS "n", 100.0 * avg(p.value = s.value) AS "Equal, %",
       100.0 * avg(abs(p.value - s.value) <= 1) AS "Within one level, %",
       avg(s.value - p.value) AS "Secondary less primary",
       1 - avg((p.value - s.value) * (p.value - s.value)) /
                 nullif(avg(p.value * p.value) + avg(s.value * s.value) - 2 * avg(p.value) * avg(s.value), 0) AS "Kappa"
FROM score p JOIN score s ON s.item = p.item AND s.axis = p.axis AND s.who = 'secondary' AND s.kind = 'judge'
WHERE p.who = 'primary' AND p.kind = 'judge' AND p.axis <> 'identity'
GROUP BY p.axis
ORDER BY min(p.rowid)
