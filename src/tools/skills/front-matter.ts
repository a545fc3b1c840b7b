// Front matter: YAML between two lines of dashes at the top of a Markdown file. This only finds it; the reader of the
// file parses it.

export const FRONT_CHARS_MAX = 16_000

type FrontParts = {
  readonly front: string
  readonly body: string
}

/** `none`: the text does not begin with a line of dashes. `open`: no second line of dashes within `charsMax` characters. */
export function splitFrontMatter(given: string, charsMax: number): FrontParts | 'none' | 'open' {
  const text = given.replace(/^\uFEFF/, '')
  const [opening] = /^---[ \t]*\r?\n/.exec(text) ?? []
  if (opening === undefined) return 'none'
  const [front = '', closing] = text.slice(opening.length, charsMax).split(/^(---[ \t]*)\r?$/m)
  if (closing === undefined) return 'open'
  const body = text.slice(opening.length + front.length + closing.length).replace(/^\r?\n/, '')
  return { front, body }
}
