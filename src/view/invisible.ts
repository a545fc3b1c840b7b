// Characters that people do not see and a model reads, taken out of texts from outside. It does not judge what is left.

/** Tags, directions, joiners, the rest of what is drawn as nothing, and control characters but for white space. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}]|(?!\s)\p{Cc}/gu

/** The text without invisible characters, and how many there were. */
export function visible(text: string): { readonly text: string; readonly removed: number } {
  let removed = 0
  const seen = text.replace(INVISIBLE, () => (removed++, ''))
  return { text: seen, removed }
}
