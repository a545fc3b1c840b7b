// What nobody sees and a model reads, taken out of texts of strangers. It does not judge what is left.

/** Tags, directions, joiners, the rest of what is drawn as nothing, and control characters but for white space. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}]|(?!\s)\p{Cc}/gu

/** The text without what nobody sees, and how much that was. */
export function visible(text: string): { readonly text: string; readonly removed: number } {
  let removed = 0
  const seen = text.replace(INVISIBLE, () => (removed++, ''))
  return { text: seen, removed }
}
