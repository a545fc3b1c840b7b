// The width of characters on a screen, in columns. The command line breaks lines.

export const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u

export function columnWidth(character: string): number {
  if (/\p{M}|\p{Cf}/u.test(character)) return 0
  if (character === '\t') return 8
  return WIDE.test(character) ? 2 : 1
}
