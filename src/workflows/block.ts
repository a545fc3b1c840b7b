// Text of others in a prompt or a report: without hidden characters, and in a block or a quote that it cannot leave. Pure.
import { visible } from '../view/invisible.ts'

/** For a prompt: without hidden text, and without anything like the end of its data block. */
export function told(text: string): string {
  return visible(text).text.replaceAll('</', '< /')
}

/** Nothing of it can be seen: as good as no text. */
export function isBlank(text: string): boolean {
  return visible(text).text.trim() === ''
}

/** A block of a prompt. Its text can neither end it nor begin another one of its name. `of` says which one it is. */
export function block(name: string, text: string, of = ''): string {
  const inner = told(text).replace(new RegExp(`<(?=${name}\\b)`, 'giu'), '< ')
  return `<${name}${of === '' ? '' : ` ${of}`}>\n${inner}\n</${name}>`
}

const LINE_ENDS = /\r\n|[\n\r\u0085\u2028\u2029\v\f]/u

/** A Markdown quote. Every line is marked, so that no line looks like the text around it. */
export function quote(text: string): string {
  return visible(text.split(LINE_ENDS).join('\n'))
    .text.split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n')
}

/** Cut after so many characters, and said. */
export function bounded(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax)}\n[cut after ${charsMax} characters]`
}

const UNFINISHED = /^The subagent did not finish: /
const REASON_CHARS_MAX = 300

/** Why a child has no answer, on one line. */
export function reasonIn(error: string): string {
  const [first = ''] = visible(error).text.replace(UNFINISHED, '').split(LINE_ENDS)
  const reason = first.trim()
  if (reason === '') return 'it gave no reason'
  return reason.length <= REASON_CHARS_MAX ? reason : `${reason.slice(0, REASON_CHARS_MAX - 1)}…`
}
