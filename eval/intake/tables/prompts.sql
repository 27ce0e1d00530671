-- title: Prompts
-- section: design
-- form: list
SELECT prompt_id AS "Prompt", category AS "Category", subcategory AS "Subcategory", text AS "Text"
FROM prompt
ORDER BY position
