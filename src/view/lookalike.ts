// Detects texts that look like another text: letters of other scripts, blanks, and invisible characters. Pure. It
// covers the letters commonly used for this (Latin, Cyrillic, Greek, Armenian, and those that Unicode itself folds),
// not every pair that some font draws alike.

/** Letters of other scripts, each followed by the Latin letter it resembles. */
const ALIKE = new Map<string, string>(
  pairs(
    [
      'аaсcеeоoрpхxуyіiјjѕsԁdһhԛqԝwҽeӏl', // Cyrillic
      'АAВBСCЕEНHІIЈJКKМMОOРPЅSТTУYХXԌGԜWՏS',
      'οoνvρpυuιiϲcϳjαa', // Greek
      'ΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXϹC',
      'ցgոnսuօoհhյjքp', // Armenian
      'ɑaɡgıiǀl',
    ].join(''),
  ),
)

function pairs(text: string): readonly (readonly [string, string])[] {
  const letters = Array.from(text)
  return letters.flatMap((letter, i) => (i % 2 === 0 ? [[letter, letters[i + 1] ?? ''] as const] : []))
}

const NOTHING = /[\p{Cf}\p{Default_Ignorable_Code_Point}\p{M}]/gu
const BLANKS = /[\s\p{Z}\u2800]+/gu

/** Equal for texts that can be mistaken for each other: without case, accents, blanks and invisible characters. */
export function skeleton(text: string): string {
  const folded = text.normalize('NFKD').replace(NOTHING, '').replace(BLANKS, '')
  return Array.from(folded, (letter) => ALIKE.get(letter) ?? letter)
    .join('')
    .toLowerCase()
}

/** The appearance on a screen, where case, accents and the number of blanks between words are visible. */
export function screenForm(text: string): string {
  const seen = text.normalize('NFKC').replace(/[\p{Cf}\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, (each) => {
    return each === '\t' ? TAB : ''
  })
  const letters = Array.from(seen.replace(/[\p{Z}\u2800]/gu, ' ').trimEnd(), (letter) => ALIKE.get(letter) ?? letter)
  return letters.join('')
}

/** A tab is drawn like this. */
export const TAB = '    '

/** The name as it is recorded: one blank between words, none around them, no invisible characters. */
export function personName(name: string): string {
  return name
    .normalize('NFC')
    .replace(/[\p{Cf}\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(BLANKS, ' ')
    .trim()
}

const SCRIPTS = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Cherokee', 'Coptic'].map((name) => {
  return { name, has: new RegExp(`\\p{Script=${name}}`, 'u') }
})

/**
 * The odd part of a name in words; null if there is none. A word in one script is fine, unless all of it looks Latin.
 */
export function whyNameOdd(name: string): string | null {
  for (const word of name.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []) {
    const odd = Array.from(word).find((letter) => !/^[\x20-\x7e]$/.test(letter) && isOdd(letter, word))
    if (odd === undefined) continue
    const script = SCRIPTS.find(({ has }) => has.test(odd))?.name ?? 'another form'
    return `"${odd}" (U+${(odd.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}, ${script})`
  }
  return null
}

function isOdd(letter: string, word: string): boolean {
  // Full-width, mathematical and other forms of a plain letter.
  if (/^[a-z0-9]+$/i.test(letter.normalize('NFKC'))) return true
  const script = SCRIPTS.find(({ has }) => has.test(letter))
  if (script === undefined || script.name === 'Latin') return ALIKE.has(letter)
  return SCRIPTS.some(({ name, has }) => name !== script.name && has.test(word)) || /^[a-z0-9]+$/.test(skeleton(word))
}
