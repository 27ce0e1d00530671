-- title: Words that name a group, added by the rewriter, by $display
-- section: rewriting
-- form: list
-- for: attribute
-- note: Of prompts that could be rewritten, in English, one a source and prompt whatever the number of seeds. Added: in the new text and not in the old one; "any" has a level of the category added. Intervals of 95 % by resampling sources, 10,000 times; of fewer than 5 sources none. Agrees, contradicts: against the source's own label, where it has one; contradicts where some added word names another group. The lists of words are short and English.
WITH unit AS (SELECT r.unit, r.model_key, m.display AS model, m.position AS model_position, r.source_id, t.level_display, t.position AS place
              FROM rewrite r JOIN model m USING (model_key) JOIN source s USING (source_id)
                   JOIN attribute t ON t.name = '$attribute' AND t.level = s."$attribute"
              WHERE r.failed = 0 AND r.other_language = 0 AND r.source2_id = ''),
     named AS (SELECT * FROM group_word g WHERE EXISTS (SELECT 1 FROM rewrite_word w WHERE w.category = g.category AND w.level = g.level))
SELECT u.model AS "Model", n.category AS "Category", n.level AS "Level", u.level_display AS "$display",
       count(DISTINCT u.source_id) AS "Sources", count(*) AS "Texts", sum(coalesce(w.what = 'added', 0)) AS "Added",
       avg(coalesce(w.what = 'added', 0)) AS "Share", boot_low(coalesce(w.what = 'added', 0), u.source_id) AS "Low",
       boot_high(coalesce(w.what = 'added', 0), u.source_id) AS "High", sum(coalesce(w.what = 'removed', 0)) AS "Removed",
       sum(coalesce(w.what = 'kept', 0)) AS "Kept", sum(coalesce(w.what = 'added' AND w.agrees = 1, 0)) AS "Agrees",
       sum(coalesce(w.what = 'added' AND w.agrees = 0, 0)) AS "Contradicts"
FROM unit u JOIN named n LEFT JOIN rewrite_word w ON w.unit = u.unit AND w.category = n.category AND w.level = n.level
GROUP BY u.model_key, n.position, u.place
ORDER BY u.model_position, n.position, u.place
