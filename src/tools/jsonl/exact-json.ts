// A JSON reader that keeps every number as it was written, because JSON.parse rounds. It reads one line and judges nothing.

/**
 * An object is a Map, so that no key of a file is mistaken for a property of ours. Of two equal keys, the last wins.
 */
export type ExactValue = null | boolean | string | Numeral | readonly ExactValue[] | ReadonlyMap<string, ExactValue>
export type Numeral = { readonly type: 'number'; readonly text: string }

/** Deeper than real records, and shallow enough for the stack. */
const DEPTH_MAX = 500

type Cursor = { readonly text: string; at: number; depth: number }

/** Undefined if the text is not exactly one JSON value, or nests deeper than 500. */
export function readExactJson(text: string): ExactValue | undefined {
  const cursor = { text, at: 0, depth: 0 }
  try {
    const value = readValue(cursor)
    return peekNext(cursor) === '' ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Writes compact JSON. Numbers keep their spelling. */
export function writeExactJson(value: ExactValue): string {
  if (value instanceof Map) {
    const entries = [...(value as ReadonlyMap<string, ExactValue>)]
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${writeExactJson(item)}`).join(',')}}`
  }
  if (isList(value)) return `[${value.map(writeExactJson).join(',')}]`
  return isNumeral(value) ? value.text : JSON.stringify(value)
}

export function isNumeral(value: ExactValue | undefined): value is Numeral {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'number'
}

export function isList(value: ExactValue | undefined): value is readonly ExactValue[] {
  return Array.isArray(value)
}

function readValue(cursor: Cursor): ExactValue {
  const first = peekNext(cursor)
  if (first === '{') return readNested(cursor, readObject)
  if (first === '[') return readNested(cursor, readList)
  if (first === '"') return readString(cursor)
  return readWord(cursor)
}

function readNested<Read>(cursor: Cursor, read: (cursor: Cursor) => Read): Read {
  cursor.depth++
  if (cursor.depth > DEPTH_MAX) throw new SyntaxError('nests too deep')
  const value = read(cursor)
  cursor.depth--
  return value
}

function readObject(cursor: Cursor): ReadonlyMap<string, ExactValue> {
  const object = new Map<string, ExactValue>()
  cursor.at++
  if (peekNext(cursor) === '}') return skipClosing(cursor, object)
  for (;;) {
    if (peekNext(cursor) !== '"') throw new SyntaxError('a key is missing')
    const key = readString(cursor)
    takeCharacter(cursor, ':')
    object.set(key, readValue(cursor))
    if (peekNext(cursor) === '}') return skipClosing(cursor, object)
    takeCharacter(cursor, ',')
  }
}

function readList(cursor: Cursor): readonly ExactValue[] {
  const list: ExactValue[] = []
  cursor.at++
  if (peekNext(cursor) === ']') return skipClosing(cursor, list)
  for (;;) {
    list.push(readValue(cursor))
    if (peekNext(cursor) === ']') return skipClosing(cursor, list)
    takeCharacter(cursor, ',')
  }
}

/** Finds the end of the string; JSON.parse decodes the escapes and refuses invalid characters. */
function readString(cursor: Cursor): string {
  const { text, at } = cursor
  let end = text.indexOf('"', at + 1)
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  if (end < 0) throw new SyntaxError('a string does not end')
  cursor.at = end + 1
  return JSON.parse(text.slice(at, end + 1)) as string
}

/** Whether an odd number of backslashes precedes the quote. The opening quote stops the count. */
function isEscaped(text: string, at: number): boolean {
  let start = at
  while (text[start - 1] === '\\') start--
  return (at - start) % 2 === 1
}

const WORD = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

function readWord(cursor: Cursor): ExactValue {
  WORD.lastIndex = cursor.at
  const word = WORD.exec(cursor.text)?.[0]
  if (word === undefined) throw new SyntaxError('a value is missing')
  cursor.at += word.length
  if (word === 'null') return null
  if (word === 'true' || word === 'false') return word === 'true'
  return { type: 'number', text: word }
}

/** Skips white space and returns the next character; empty at the end. */
function peekNext(cursor: Cursor): string {
  while (' \t\n\r'.includes(cursor.text[cursor.at] ?? 'end')) cursor.at++
  return cursor.text[cursor.at] ?? ''
}

function takeCharacter(cursor: Cursor, character: string): void {
  if (peekNext(cursor) !== character) throw new SyntaxError(`"${character}" is missing`)
  cursor.at++
}

function skipClosing<Read>(cursor: Cursor, value: Read): Read {
  cursor.at++
  return value
}
