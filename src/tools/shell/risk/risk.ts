// How risky a shell command is, read from its syntax. It widens prompts and stops disasters; it is not the boundary, which
// is the sandbox: a program can always do more than its name says.
import type { Case } from './call.ts'
import { Findings, type Risk } from './level.ts'
import { parseBash } from './parse.ts'
import { judgeScript } from './script.ts'

export type { Risk } from './level.ts'

/** The bash tool takes half of this. */
const COMMAND_CHARACTERS_MAX = 200_000
/** Of all texts in texts together (`sh -c "sh -c …"`): what nests further is made to be unreadable. */
const TOTAL_CHARACTERS_MAX = 600_000

/** Never throws: what cannot be read is for a person to decide. */
export async function classify(command: string): Promise<Risk> {
  const findings = new Findings()
  // A set is read in the order of its additions, also of those made while it is read.
  const scripts = new Set([command])
  let characters = 0
  for (const text of scripts) {
    characters += text.length
    if (text.length > COMMAND_CHARACTERS_MAX || characters > TOTAL_CHARACTERS_MAX) {
      findings.note('needs_approval', 'The command is too long to be read.')
      break
    }
    await read(text, { findings, script: (inner) => scripts.add(inner) })
  }
  return findings.risk()
}

async function read(text: string, where: Case): Promise<void> {
  const { findings, script } = where
  // oxlint-disable-next-line no-control-regex -- they are what it is about
  if (/[\0-\x08\x0b-\x1f\x7f]/.test(text)) findings.note('needs_approval', 'The command holds control characters.')
  // A backslash at the end of a line joins it to the next, even within a word, which the grammar does not know.
  if (text.includes('\\\n')) script(text.replaceAll('\\\n', ''))
  try {
    const syntax = await parseBash(text)
    if (syntax === null) {
      findings.note('needs_approval', 'The command takes too long to be read.')
      // It is still searched for what is forbidden, as far as its parts can be read alone.
      for (const part of text.split(/[\n;|&]+/)) if (part !== text) script(part)
      return
    }
    if (syntax.flaw !== null) {
      findings.note('needs_approval', `The command cannot be read for sure: ${syntax.flaw}.`)
      // For bash `((` may be two subshells, and a backslash begins a word also after a line. For the grammar neither is so.
      script(text.replace(/\((?=\()/g, '( ').replace(/\n\\(?=\w)/g, '\n'))
    }
    judgeScript(syntax, where)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    findings.note('needs_approval', `The command cannot be read: ${reason}.`)
  }
}
