-- title: Masks and their borders, by $display
-- section: masks
-- form: list
-- for: attribute
-- note: Mask: what the study drew, or a file. May change: the share of the source's pixels that the mask lets an edit change, its mean over sources, the least and the most. Exact: outputs whose kept pixels have the source's bytes, which was checked when they were written. Seam: the mean difference, of 255, between neighbouring pixels of which one may change and one is kept; of the source: the same pairs there. Ratio: the one by the other; 1 is no border.
WITH one AS (SELECT i.*, k.what, k.edited, k.kept_exact, k.seam, k.source_seam FROM masked k JOIN item i USING (item) WHERE i.status = 'made')
SELECT o.model AS "Model", o.what AS "Mask", t.level_display AS "$display", count(DISTINCT o.source_id) AS "Sources",
       count(*) AS "Outputs", avg(o.edited) AS "May change", min(o.edited) AS "Least", max(o.edited) AS "Most",
       sum(o.kept_exact) AS "Exact", avg(o.seam) AS "Seam", avg(o.source_seam) AS "Of the source",
       avg(o.seam) / nullif(avg(o.source_seam), 0) AS "Ratio"
FROM one o JOIN attribute t ON t.name = '$attribute' AND t.level = o."$attribute"
GROUP BY o.model_key, o.what, t.position
ORDER BY o.model_position, o.what, t.position
