// Foreign text in a prompt or a report: without hidden characters, and inside a block or a quote that it cannot close.
// Pure.
import { removeInvisible } from '../view/invisible.ts'

/** Removes hidden characters, and breaks anything that looks like the end of a data block. */
export function escapeForPrompt(text: string): string {
  return removeInvisible(text).text.replaceAll('</', '< /')
}

/** Has no visible characters, so it counts as no text. */
export function isBlank(text: string): boolean {
  return removeInvisible(text).text.trim() === ''
}

/**
 * A block of a prompt. Its text can neither close it nor open another block of the same name. `of` holds its
 * attributes.
 */
export function promptBlock(name: string, text: string, of = ''): string {
  const inner = escapeForPrompt(text).replace(new RegExp(`<(?=${name}\\b)`, 'giu'), '< ')
  return `<${name}${of === '' ? '' : ` ${of}`}>\n${inner}\n</${name}>`
}

/** A data block that its content cannot close. */
export function dataBlock(text: string): string {
  return promptBlock('data', text)
}

export function bulletList(texts: readonly string[]): string {
  return texts.map((text) => `- ${text}`).join('\n')
}

const LINE_ENDS = /\r\n|[\n\r\u0085\u2028\u2029\v\f]/u

/** A Markdown quote. Every line is marked, so that no line looks like the text around it. */
export function quoteMarkdown(text: string): string {
  return removeInvisible(text.split(LINE_ENDS).join('\n'))
    .text.split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n')
}

/** Cuts a long text and adds a note about the cut. */
export function truncateText(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax)}\n[cut after ${charsMax} characters]`
}

const UNFINISHED = /^The subagent did not finish: /
const REASON_CHARS_MAX = 300

/** The reason why a child has no answer, on one line. */
export function childFailureReason(error: string): string {
  const [first = ''] = removeInvisible(error).text.replace(UNFINISHED, '').split(LINE_ENDS)
  const reason = first.trim()
  if (reason === '') return 'it gave no reason'
  return reason.length <= REASON_CHARS_MAX ? reason : `${reason.slice(0, REASON_CHARS_MAX - 1)}…`
}
