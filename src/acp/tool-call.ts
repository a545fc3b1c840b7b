// A call as an editor shows it: a title, its kind, its files and its changes. Pure. `rawInput` has the arguments
// exactly as the model wrote them; a title is one short line of them, without invisible characters.
import { fieldLine, fieldsIn } from '../view/form-fields.ts'
import type { Diff, ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk'
import { isAbsolute, join } from 'node:path'
import type { Json } from '../kernel/content.ts'
import { oneLine } from '../view/clean.ts'
import { isObject } from '../view/untrusted-json.ts'

export type ToolAction = { readonly tool: string; readonly args: Json }

export const ASK_USER = 'ask_user'
export const TITLE_CHARS_MAX = 120
/** Longer texts are not shown as a diff. They are in `rawInput`. */
const DIFF_CHARS_MAX = 1_000_000
const FILES_MAX = 200

const KINDS: Readonly<Record<string, ToolKind>> = {
  read: 'read',
  list: 'read',
  write: 'edit',
  edit: 'edit',
  search: 'search',
  glob: 'search',
  web_search: 'search',
  web_fetch: 'fetch',
  bash: 'execute',
  skill_run: 'execute',
  todo: 'think',
  plan_exit: 'switch_mode',
}

export function toolKind(tool: string): ToolKind {
  return Object.hasOwn(KINDS, tool) ? (KINDS[tool] ?? 'other') : 'other'
}

/** The argument that describes a call best, in order of preference. */
const TELLING = ['path', 'command', 'pattern', 'query', 'url', 'question', 'name', 'prompt'] as const

export function callTitle({ tool, args }: ToolAction): string {
  const fields = isObject(args) ? args : {}
  const [first] = parseEdits(args)
  const told = TELLING.map((name) => fields[name]).find((value) => typeof value === 'string') ?? first?.path
  return oneLine(typeof told === 'string' ? `${tool} ${told}` : tool, TITLE_CHARS_MAX)
}

/** The files that a call names, as full paths, each once. */
export function callLocations({ args }: ToolAction, folder: string): ToolCallLocation[] {
  const fields = isObject(args) ? args : {}
  const path = typeof fields['path'] === 'string' ? [fields['path']] : []
  const named = [...new Set([...path, ...parseEdits(args).map((edit) => edit.path)])].slice(0, FILES_MAX)
  const line = Number.isSafeInteger(fields['offset']) && Number(fields['offset']) > 0 ? Number(fields['offset']) : null
  return named.map((each) => ({ path: absolutePath(each, folder), ...(line === null ? {} : { line }) }))
}

/** The changes that a call describes: its own texts, not the whole file. A question shows its text. */
export function callContent({ tool, args }: ToolAction, folder: string): ToolCallContent[] {
  if (tool === ASK_USER) return textContent(questionText(args))
  return callDiffs({ tool, args }, folder).map((diff) => ({ type: 'diff', ...diff }))
}

function callDiffs({ tool, args }: ToolAction, folder: string): readonly Diff[] {
  if (tool === 'edit') {
    return parseEdits(args).map(({ path, old, fresh }) => ({
      path: absolutePath(path, folder),
      oldText: old,
      newText: fresh,
    }))
  }
  if (tool !== 'write' || !isObject(args)) return []
  const { path, content, append } = args
  if (typeof path !== 'string' || typeof content !== 'string' || append === true) return []
  return content.length > DIFF_CHARS_MAX ? [] : [{ path: absolutePath(path, folder), newText: content }]
}

/** The diff of a `write` to a file that existed before. */
export function writtenDiff({ tool, args }: ToolAction, before: string, folder: string): ToolCallContent[] {
  if (before.length > DIFF_CHARS_MAX) return []
  const [diff] = tool === 'write' ? callDiffs({ tool, args }, folder) : []
  return diff ? [{ type: 'diff', ...diff, oldText: before }] : []
}

export function textContent(text: string): ToolCallContent[] {
  return text === '' ? [] : [{ type: 'content', content: { type: 'text', text } }]
}

export function questionText(args: Json): string {
  const { question, choices } = parseQuestion(args)
  return choices.length === 0 ? question : `${question}\n\n${choices.map((choice) => `- ${choice}`).join('\n')}`
}

export function parseQuestion(args: Json): { readonly question: string; readonly choices: readonly string[] } {
  const { question = '', choices = [] } = isObject(args) ? args : {}
  const listed: readonly Json[] = Array.isArray(choices) ? choices : []
  const fields = fieldsIn(args).map((field) => `- ${fieldLine(field)}`)
  const form = fields.length === 0 ? '' : `\n\nAnswer with one JSON object of these fields:\n${fields.join('\n')}`
  return {
    question: (typeof question === 'string' ? question : '') + form,
    choices: listed.filter((choice): choice is string => typeof choice === 'string'),
  }
}

type FileEdit = { readonly path: string; readonly old: string; readonly fresh: string }

function parseEdits(args: Json): readonly FileEdit[] {
  const { edits } = isObject(args) ? args : {}
  const listed: readonly Json[] = Array.isArray(edits) ? edits.slice(0, FILES_MAX) : []
  return listed.flatMap((edit): readonly FileEdit[] => {
    const { path, old_string: old, new_string: fresh } = isObject(edit) ? edit : {}
    if (typeof path !== 'string' || typeof old !== 'string' || typeof fresh !== 'string') return []
    return [{ path, old, fresh }]
  })
}

function absolutePath(path: string, folder: string): string {
  return isAbsolute(path) ? path : join(folder, path)
}
