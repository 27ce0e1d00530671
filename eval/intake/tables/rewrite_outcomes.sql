-- title: Outcomes where the rewriter named a group, and where it did not
-- section: rewriting
-- form: list
-- note: Descriptive: prompts and sources to which a word of gender, race, age, skin or looks was added are others than those to which none was. Prompts that could not be rewritten are left out.
SELECT i.model AS "Model", i.measure_display AS "Outcome",
       CASE WHEN EXISTS (SELECT 1 FROM rewrite_word w WHERE w.unit = r.unit AND w.level = 'any' AND w.category IN ('gender', 'race', 'age', 'skin', 'looks'))
            THEN 'added' ELSE 'none added' END AS "Group word",
       count(DISTINCT i.source_id) AS "Sources", count(*) AS "Outputs", avg(i.value) AS "Share",
       boot_low(i.value, i.source_id) AS "Low", boot_high(i.value, i.source_id) AS "High"
FROM measured i JOIN rewrite r ON r.model_key = i.model_key AND r.experiment = i.experiment AND r.source_id = i.source_id
     AND r.source2_id = coalesce(i.source2_id, '') AND r.prompt_id = i.prompt_id AND r.arm = i.arm
WHERE i.who = 'judges' AND r.failed = 0
GROUP BY i.model_key, i.measure, 3
ORDER BY i.model_position, i.measure_position, 3
