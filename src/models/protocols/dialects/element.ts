// Reads and writes a call as an element: `<invoke name="read"><parameter name="path">a</parameter></invoke>`, the same
// as `<function name="read">`, and `<function=read><parameter=path>a</parameter></function>`, also with JSON in it.
// Several may stand in a block. Pure, and linear in the text.
import type { Json } from '../../../kernel/content.ts'
import { isObject, parseJson } from '../../../view/untrusted-json.ts'
import {
  type CallBlock,
  type CallReader,
  type CallReading,
  fieldsJson,
  parametersOf,
  type ReadCall,
  readValue,
} from './call-reader.ts'
import { skipSpace } from './json-span.ts'

const ELEMENT = /<(invoke|function)(?: name="([^"<>]{1,200})"|=([^<>\s"]{1,200}))>/y
const PARAMETER = /<parameter(?: name="([^"<>]{1,200})"|=([^<>\s"]{1,200}))(?: [^<>]{0,200})?>/y
const PARAMETER_END = '</parameter>'

export const readElement: CallReader = (text, from, reading) => {
  const [head = '', kind = '', quoted, bare] = matchAt(ELEMENT, text, from) ?? []
  const tool = quoted ?? bare ?? ''
  if (!reading.tools.has(tool)) return null
  const closing = `</${kind}>`
  const start = skipSpace(text, from + head.length)
  const read = text[start] === '{' ? readObject(text, start, reading) : readParameters(text, start, tool, reading)
  if (read === null) return null
  const end = skipSpace(text, read.end)
  return text.startsWith(closing, end) ? { calls: [{ tool, args: read.args }], end: end + closing.length } : null
}

/** A tag around one or more elements. */
export const readElements: CallReader = (text, from, reading) => {
  const start = text.indexOf('>', from) + 1
  const closing = `</${text.slice(from + 1, start)}`
  const calls: ReadCall[] = []
  for (let at = skipSpace(text, start); ; ) {
    if (text.startsWith(closing, at)) return calls.length > 0 ? { calls, end: at + closing.length } : null
    const element: CallBlock | null = readElement(text, at, reading)
    if (element === null) return null
    calls.push(...element.calls)
    at = skipSpace(text, element.end)
  }
}

type ReadArguments = { readonly args: string; readonly end: number }

function readObject(text: string, from: number, reading: CallReading): ReadArguments | null {
  const end = reading.endOfJson(text, from)
  return end < 0 ? null : { args: text.slice(from, end), end }
}

/** Null if a parameter has no end, or comes twice. */
function readParameters(text: string, from: number, name: string, reading: CallReading): ReadArguments | null {
  const tool = reading.tools.get(name)
  const parameters = tool ? parametersOf(tool) : new Map<string, Json>()
  const entries = new Map<string, Json>()
  for (let at = from; ; ) {
    const [head = '', quoted, bare] = matchAt(PARAMETER, text, at) ?? []
    const key = quoted ?? bare
    if (key === undefined) return { args: fieldsJson([...entries]), end: at }
    const end = endOfParameter(text, at + head.length, reading)
    if (end < 0 || entries.has(key)) return null
    const value = withoutFrame(text.slice(at + head.length, end))
    entries.set(key, readValue(value, parameters.get(key)))
    at = skipSpace(text, end + PARAMETER_END.length)
  }
}

/** The value may hold the closing tag: it ends where another parameter or the end of the element follows. */
function endOfParameter(text: string, from: number, reading: CallReading): number {
  for (let at = from; ; ) {
    const end = reading.find(text, PARAMETER_END, at)
    if (end < 0) return -1
    at = end + PARAMETER_END.length
    const next = skipSpace(text, at)
    const isLast = text.startsWith('</invoke>', next) || text.startsWith('</function>', next)
    if (isLast || matchAt(PARAMETER, text, next) !== null) return end
  }
}

/** A value on lines of its own. */
function withoutFrame(value: string): string {
  return value.startsWith('\n') ? value.slice(1).replace(/\n$/, '') : value
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

export function writeInvoke({ tool, args }: ReadCall): string {
  return `<invoke name="${tool}">\n${writeParameters(args, (key) => `<parameter name="${key}">`)}</invoke>`
}

export function writeFunction({ tool, args }: ReadCall): string {
  return `<function=${tool}>\n${writeParameters(args, (key) => `<parameter=${key}>`)}</function>`
}

function writeParameters(args: string, head: (key: string) => string): string {
  const value = parseJson(args)
  const entries = isObject(value) ? Object.entries(value) : []
  return entries
    .map(([key, each]) => {
      const text = typeof each === 'string' ? each : JSON.stringify(each)
      return `${head(key)}${text.includes('\n') ? `\n${text}\n` : text}${PARAMETER_END}\n`
    })
    .join('')
}
