// Lets a person change a text in their own editor: $VISUAL or $EDITOR, as Git and other programs use them.
import { spawnSync } from 'node:child_process'
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
