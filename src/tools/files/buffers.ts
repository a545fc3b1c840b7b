// Files as an editor has them, for a host that works inside one: what is not saved counts, and changes go through the editor. The disk is
// looked at first, with all its rules; this only says which text counts. It decides nothing about paths.
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import type { Frozen } from '../../kernel/content.ts'
import { denied, type FileBuffers, type Guard, type Place } from './paths.ts'
import { ToolFailure } from '../core/output.ts'

/** A file as it was when looked at. `unsaved`: an editor has this text, and the disk another one or none. */
export type Seen = Frozen<{ bytes: Buffer; hash: string; mode: number; unsaved?: true }>

/** For a file that the editor made and has not saved. */
const NEW_FILE_MODE = 0o644

/** The file as it counts: as the editor has it if that is another text, else as it is on disk. */
export async function seenInEditor(guarded: Guard, place: Place, { onDisk, writing }: Looked): Promise<Seen | null> {
  const { buffers, fileBytesMax } = guarded
  const { shown } = place
  if (buffers === undefined || (onDisk !== null && !isUtf8(onDisk.bytes))) return onDisk
  const text = await textOf(buffers, place, onDisk !== null && writing)
  // Some editors show a file that is not there as an empty one.
  if (
    text === null ||
    (onDisk === null && text === '') ||
    (onDisk !== null && isSameText(text, onDisk.bytes.toString()))
  )
    return onDisk
  const bytes = Buffer.from(text)
  if (bytes.length > fileBytesMax) throw denied(`"${shown}" has ${bytes.length} bytes; ${fileBytesMax} is the most.`)
  return { bytes, hash: hash('sha256', bytes), mode: onDisk?.mode ?? NEW_FILE_MODE, unsaved: true }
}

type Looked = { readonly onDisk: Seen | null; readonly writing: boolean }

/** What cannot be read there is read on disk. A file that is to be changed must be known as the editor has it. */
async function textOf(buffers: FileBuffers, { path, shown }: Place, needed: boolean): Promise<string | null> {
  try {
    return await buffers.read(path)
  } catch (error) {
    if (!needed) return null
    const why = error instanceof Error ? error.message : String(error)
    throw new ToolFailure('Unavailable', `The editor does not show "${shown}", so it is not changed: ${why}`)
  }
}

/** Editors keep line ends and a byte order mark beside the text. */
function isSameText(inEditor: string, onDisk: string): boolean {
  return plain(inEditor) === plain(onDisk)
}

function plain(text: string): string {
  return text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')
}

/** Throws unless the editor took it. */
export async function writeInEditor({ buffers }: Guard, { path, shown }: Place, text: string): Promise<void> {
  try {
    await buffers?.write?.(path, text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ToolFailure('Failed', `The editor did not write "${shown}": ${why}`)
  }
}

/** A file with changes that only the editor has is not written behind its back. */
export function checkSaved({ buffers }: Guard, { shown }: Place, seen: Seen | null): void {
  if (!seen?.unsaved || buffers?.write) return
  const text = `"${shown}" has changes in the editor that are not saved, so nothing was written. Ask the user to save it.`
  throw new ToolFailure('Failed', text, { error_type: 'Conflict' })
}
