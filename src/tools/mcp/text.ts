// Making a stranger's text fit to be read: nothing invisible, nothing endless, no secrets of ours. It does not judge what it says.
import { clip } from '../core/bound.ts'

/** Tag characters, which spell invisible words, and marks that turn the direction of reading. */
const HIDDEN = /[\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu
/** All that, whatever else has no width, and control characters but for line ends and tabs. */
const UNSEEN = /(?![\t\n])[\p{Default_Ignorable_Code_Point}\p{Cc}\u2028\u2029]/gu
/** The same, but for what joins emoji. */
const HIDING = /(?![\t\n]|\u200D|\uFE0F)[\p{Default_Ignorable_Code_Point}\p{Cc}\u2028\u2029]/u

/** For names, descriptions and messages, where no invisible character has any business. */
export function visible(text: string, charsMax: number): string {
  const seen = text.replace(UNSEEN, '')
  return seen.length <= charsMax ? seen : `${clip(seen, charsMax - 1)}…`
}

/** For content, where joiners of no width are part of writing: only what hides text is taken out, and counted. */
export function revealed(text: string): { readonly text: string; readonly hidden: number } {
  const seen = text.replace(HIDDEN, '')
  return { text: seen, hidden: text.length - seen.length }
}

/** The same text with what is not seen spelled out. */
export function shown(text: string): string {
  return text.replace(UNSEEN, (mark) => `\\u{${mark.codePointAt(0)?.toString(16)}}`)
}

/** For values, from which nothing can be taken out without changing what they mean. */
export function isHiding(text: string): boolean {
  return HIDING.test(text)
}

export function without(secrets: readonly string[], text: string): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text)
}
