// Removes characters that people cannot see but a model reads from texts of others. It does not judge the rest.

/** Tags, direction marks, joiners, other invisible characters, and control characters except white space. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}]|(?!\s)\p{Cc}/gu

/** The text without invisible characters, and how many were removed. */
export function removeInvisible(text: string): { readonly text: string; readonly removed: number } {
  let removed = 0
  const seen = text.replace(INVISIBLE, () => (removed++, ''))
  return { text: seen, removed }
}
