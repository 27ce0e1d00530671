-- title: Rewritten prompts, by $display
-- section: rewriting
-- form: list
-- for: attribute
-- note: One a source and prompt, whatever the number of seeds. Length: bytes of the new text by those of the old one. Keeps: texts with a word that asks to keep something of the person which the old text did not have.
SELECT m.display AS "Model", r.style AS "Style", r.rewriter AS "Rewriter", t.level_display AS "$display",
       count(DISTINCT r.source_id) AS "Sources", count(*) AS "Prompts", sum(r.failed) AS "Failed", avg(r.tries) AS "Tries",
       avg(CASE WHEN r.failed = 0 THEN r.length_ratio END) AS "Length",
       sum(r.failed = 0 AND r.prompt = r.original) AS "Unchanged",
       sum(r.failed = 0 AND EXISTS (SELECT 1 FROM rewrite_word w WHERE w.unit = r.unit AND w.category = 'keeps' AND w.level = 'any')) AS "Keeps",
       sum(r.other_language) AS "Other language"
FROM rewrite r JOIN model m USING (model_key) JOIN source s USING (source_id)
     JOIN attribute t ON t.name = '$attribute' AND t.level = s."$attribute"
WHERE r.source2_id = ''
GROUP BY r.model_key, t.position
ORDER BY m.position, t.position
