// Lets a person change a text in their own editor: $VISUAL or $EDITOR, as Git and other programs use them.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Returns the file after the editor has ended. Null if there is no editor, or it failed. */
export function editInEditor(text: string, env: NodeJS.ProcessEnv = process.env): string | null {
  const editor = (env['VISUAL'] ?? '') || (env['EDITOR'] ?? '')
  if (editor.trim() === '') return null
  const folder = mkdtempSync(join(tmpdir(), 'terret-edit-'))
  try {
    const file = join(folder, 'arguments.json')
    writeFileSync(file, `${text}\n`, { mode: 0o600 })
    // The variable may hold a command with flags, so a shell reads it. The path of the file is passed as one word.
    const { status } = spawnSync('/bin/sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit' })
    return status === 0 ? readFileSync(file, 'utf8') : null
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export type EditorEnd =
  | { readonly type: 'edited'; readonly text: string }
  /** There is no editor, or it failed: the text stays as it was. */
  | { readonly type: 'failed'; readonly why: string }

/** The same without stopping this process, whose work goes on meanwhile. */
export async function openEditor(text: string, name: string, env: NodeJS.ProcessEnv): Promise<EditorEnd> {
  const editor = (env['VISUAL'] ?? '') || (env['EDITOR'] ?? '')
  if (editor.trim() === '')
    return { type: 'failed', why: 'No editor is chosen. Set EDITOR, such as: export EDITOR=nano' }
  const folder = mkdtempSync(join(tmpdir(), 'terret-edit-'))
  try {
    const file = join(folder, name)
    writeFileSync(file, text === '' ? '' : `${text}\n`, { mode: 0o600 })
    const code = await new Promise<number | null>((resolve) => {
      const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit', env })
      child.on('error', () => resolve(null))
      child.on('close', resolve)
    })
    if (code !== 0) return { type: 'failed', why: `The editor failed (${editor}), so nothing was changed.` }
    return { type: 'edited', text: readFileSync(file, 'utf8') }
  } catch (error) {
    return { type: 'failed', why: `The edited text could not be read: ${error instanceof Error ? error.message : ''}` }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
