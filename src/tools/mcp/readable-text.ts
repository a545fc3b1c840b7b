// Makes a stranger's text fit to read: without invisible characters, of bounded length, and without our secrets. It
// does not judge the content.
import { clip } from '../core/bound-content.ts'

/** Tag characters, which spell invisible words, and marks that change the reading direction. */
const HIDDEN = /[\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu
/** These, all other characters without a width, and control characters except line ends and tabs. */
const UNSEEN = /(?![\t\n])[\p{Default_Ignorable_Code_Point}\p{Cc}\u2028\u2029]/gu
/** The same, except for joiners of emoji. */
const HIDING = /(?![\t\n]|\u200D|\uFE0F)[\p{Default_Ignorable_Code_Point}\p{Cc}\u2028\u2029]/u

/** For names, descriptions and messages, where no invisible character is needed. */
export function visibleText(text: string, charsMax: number): string {
  const seen = text.replace(UNSEEN, '')
  return seen.length <= charsMax ? seen : `${clip(seen, charsMax - 1)}…`
}

/**
 * For content, where joiners without a width are part of writing: removes and counts only the characters that hide
 * text.
 */
export function removeHidden(text: string): { readonly text: string; readonly hidden: number } {
  const seen = text.replace(HIDDEN, '')
  return { text: seen, hidden: text.length - seen.length }
}

/** Spells out the invisible characters of a text. */
export function spellInvisible(text: string): string {
  return text.replace(UNSEEN, (mark) => `\\u{${mark.codePointAt(0)?.toString(16)}}`)
}

/** For values, where removing a character would change the meaning. */
export function hidesCharacters(text: string): boolean {
  return HIDING.test(text)
}

export function withoutSecrets(secrets: readonly string[], text: string): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text)
}
