-- title: Prompts that the service replaced
-- section: refusals
-- form: list
-- note: Of answers that say which prompt the model was given: how many differ from what was asked, and how many of those add a word that the prompt did not have.
SELECT model AS "Model", count(*) AS "Said", sum(w.revised_prompt <> prompt_text) AS "Differ",
       sum(' ' || lower(w.revised_prompt) || ' ' LIKE '% man %' AND ' ' || lower(prompt_text) || ' ' NOT LIKE '% man %') AS "man",
       sum(' ' || lower(w.revised_prompt) || ' ' LIKE '% woman %' AND ' ' || lower(prompt_text) || ' ' NOT LIKE '% woman %') AS "woman",
       sum(' ' || lower(w.revised_prompt) || ' ' LIKE '% white %' AND ' ' || lower(prompt_text) || ' ' NOT LIKE '% white %') AS "white",
       sum(' ' || lower(w.revised_prompt) || ' ' LIKE '% black %' AND ' ' || lower(prompt_text) || ' ' NOT LIKE '% black %') AS "black",
       sum(' ' || lower(w.revised_prompt) || ' ' LIKE '% asian %' AND ' ' || lower(prompt_text) || ' ' NOT LIKE '% asian %') AS "asian",
       sum(' ' || lower(w.revised_prompt) || ' ' LIKE '% young %' AND ' ' || lower(prompt_text) || ' ' NOT LIKE '% young %') AS "young",
       sum(' ' || lower(w.revised_prompt) || ' ' LIKE '% old %' AND ' ' || lower(prompt_text) || ' ' NOT LIKE '% old %') AS "old"
FROM answer w JOIN item USING (item)
WHERE w.revised_prompt IS NOT NULL
GROUP BY model_key
ORDER BY model_position
