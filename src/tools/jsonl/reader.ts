// A JSON reader that keeps every number as it was written, because JSON.parse rounds. It reads one line and judges nothing.

/** An object is a Map, so that no key of a file can be mistaken for a property of ours. The last of two equal keys wins. */
export type Value = null | boolean | string | Numeral | readonly Value[] | ReadonlyMap<string, Value>
export type Numeral = { readonly type: 'number'; readonly text: string }

/** Deeper than any record people keep, shallow enough for the stack. */
const DEPTH_MAX = 500

type Cursor = { readonly text: string; at: number; depth: number }

/** Undefined when the text is not exactly one JSON value (or nests deeper than 500). */
export function readJson(text: string): Value | undefined {
  const cursor = { text, at: 0, depth: 0 }
  try {
    const value = readValue(cursor)
    return next(cursor) === '' ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Compact JSON. Numbers come out as they came in. */
export function writeJson(value: Value): string {
  if (value instanceof Map) {
    const entries = [...(value as ReadonlyMap<string, Value>)]
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${writeJson(item)}`).join(',')}}`
  }
  if (isList(value)) return `[${value.map(writeJson).join(',')}]`
  return isNumeral(value) ? value.text : JSON.stringify(value)
}

export function isNumeral(value: Value | undefined): value is Numeral {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'number'
}

export function isList(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value)
}

function readValue(cursor: Cursor): Value {
  const first = next(cursor)
  if (first === '{') return nested(cursor, readObject)
  if (first === '[') return nested(cursor, readList)
  if (first === '"') return readString(cursor)
  return readWord(cursor)
}

function nested<Read>(cursor: Cursor, read: (cursor: Cursor) => Read): Read {
  cursor.depth++
  if (cursor.depth > DEPTH_MAX) throw new SyntaxError('nests too deep')
  const value = read(cursor)
  cursor.depth--
  return value
}

function readObject(cursor: Cursor): ReadonlyMap<string, Value> {
  const object = new Map<string, Value>()
  cursor.at++
  if (next(cursor) === '}') return closed(cursor, object)
  for (;;) {
    if (next(cursor) !== '"') throw new SyntaxError('a key is missing')
    const key = readString(cursor)
    take(cursor, ':')
    object.set(key, readValue(cursor))
    if (next(cursor) === '}') return closed(cursor, object)
    take(cursor, ',')
  }
}

function readList(cursor: Cursor): readonly Value[] {
  const list: Value[] = []
  cursor.at++
  if (next(cursor) === ']') return closed(cursor, list)
  for (;;) {
    list.push(readValue(cursor))
    if (next(cursor) === ']') return closed(cursor, list)
    take(cursor, ',')
  }
}

/** The end is found here; JSON.parse decodes the escapes and refuses what a string may not hold. */
function readString(cursor: Cursor): string {
  const { text, at } = cursor
  let end = text.indexOf('"', at + 1)
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  if (end < 0) throw new SyntaxError('a string does not end')
  cursor.at = end + 1
  return JSON.parse(text.slice(at, end + 1)) as string
}

/** An odd number of backslashes before it. The opening quote stops the count. */
function isEscaped(text: string, at: number): boolean {
  let start = at
  while (text[start - 1] === '\\') start--
  return (at - start) % 2 === 1
}

const WORD = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

function readWord(cursor: Cursor): Value {
  WORD.lastIndex = cursor.at
  const word = WORD.exec(cursor.text)?.[0]
  if (word === undefined) throw new SyntaxError('a value is missing')
  cursor.at += word.length
  if (word === 'null') return null
  if (word === 'true' || word === 'false') return word === 'true'
  return { type: 'number', text: word }
}

/** Skips white space and shows the character that follows; empty at the end. */
function next(cursor: Cursor): string {
  while (' \t\n\r'.includes(cursor.text[cursor.at] ?? 'end')) cursor.at++
  return cursor.text[cursor.at] ?? ''
}

function take(cursor: Cursor, character: string): void {
  if (next(cursor) !== character) throw new SyntaxError(`"${character}" is missing`)
  cursor.at++
}

function closed<Read>(cursor: Cursor, value: Read): Read {
  cursor.at++
  return value
}
