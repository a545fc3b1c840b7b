// The origin of a session: its folder, the name of its environment, and read-only files. This file has their options,
// their form in `session.created`, and the text for the model. The files lie beside the log, by hash.
import { isAbsolute } from 'node:path'
import type { BlobRef, Frozen, Labels, Metadata } from '../kernel/content.ts'
import type { SessionDescription } from '../kernel/event.ts'
import { shortenText } from '../view/shown-text.ts'
import { Fault } from '../kernel/failure.ts'
import type { Blob } from '../ports/store.ts'
import { type Checks, listCheck, requiredCheck, textCheck, optionsCheck } from '../options.ts'
import { FILE_PART, type FilePart } from '../tools/core/file-part.ts'
import { readInput } from './input.ts'
import { labelsCheck, metadataCheck } from './metadata.ts'
import type { SessionOrigin } from '../runtime/state/session-origin.ts'

/** A file that a session is opened with, which its tools may read. */
export type Attachment = FilePart & { readonly name: string }

export type OriginOptions = {
  /** Default: the harness's own. */
  readonly environment?: string
  /** Files for the whole life of the session. The model is told about them, and reads them with `read`. */
  readonly attachments?: readonly Attachment[]
  /** The full path of the session's folder, for `list({ folder })`. It does not change what tools may do. */
  readonly folder?: string
  /**
   * Data for your own code: tools, hooks, traces, results and children have it, at most 16 KB of JSON. The model does
   * not see it.
   */
  readonly metadata?: Metadata
  /** For `list({ where })`: at most 16, such as `{ tenant: 'acme' }`. Children have the same labels. */
  readonly labels?: Labels
}

export const ORIGIN_OPTIONS: Checks<OriginOptions> = {
  metadata: metadataCheck,
  labels: labelsCheck,
  environment: textCheck,
  attachments: listCheck(optionsCheck<Attachment>({ ...FILE_PART, name: requiredCheck(textCheck) })),
  folder: textCheck,
}

const NAME_CHARS_MAX = 200
const FOLDER_CHARS_MAX = 4_096

export function buildOrigin(options: OriginOptions): {
  readonly origin: SessionOrigin
  readonly blobs: readonly Blob[]
} {
  const { environment, attachments = [] } = options
  if (environment !== undefined) checkName('An environment', environment)
  for (const [i, { name }] of attachments.entries()) {
    checkName('An attachment', name)
    if (attachments.findIndex((other) => other.name === name) < i)
      throw new Fault('invalid_input', `Two attachments are called "${name}". Give each a name of its own.`)
  }
  const { parts, blobs } = readInput(attachments)
  const refs = parts.filter((part): part is BlobRef => part.type === 'blob')
  const named = { ...(environment === undefined ? {} : { environment }), ...sessionDescription(options) }
  return { origin: refs.length > 0 ? { ...named, attachments: refs } : named, blobs }
}

/** Throws for an origin that `buildOrigin` would not have made. */
export function checkSessionOrigin({ environment, attachments = [] }: SessionOrigin): void {
  if (environment !== undefined) checkName('An environment', environment)
  for (const { name } of attachments) if (name !== undefined) checkName('An attachment', name)
}

/** A host's description of a session, in the form of an event. */
export function sessionDescription({
  folder,
  metadata,
  labels,
}: Frozen<SessionDescription>): Frozen<SessionDescription> {
  const said = metadata === undefined ? {} : { metadata }
  const listed = labels === undefined || Object.keys(labels).length === 0 ? {} : { labels: { ...labels } }
  return { ...folderField(folder), ...said, ...listed }
}

function folderField(folder: string | undefined): Pick<SessionOrigin, 'folder'> {
  if (folder === undefined) return {}
  // An unpaired surrogate would change when it is written to a file and read back.
  const odd = !isAbsolute(folder) || /[\0\p{Cs}]/u.test(folder)
  if (!odd && folder.length <= FOLDER_CHARS_MAX) return { folder }
  throw new Fault(
    'invalid_input',
    `${JSON.stringify(shortenText(folder, 64))} is no folder to work in. Give its full path, of at most ${FOLDER_CHARS_MAX} characters.`,
  )
}

function checkName(what: string, name: unknown): void {
  const good = typeof name === 'string' && name.trim() !== '' && name.length <= NAME_CHARS_MAX && !/\p{Cc}/u.test(name)
  if (!good) throw new Fault('invalid_input', `${what} has a name: one line of 1 to ${NAME_CHARS_MAX} characters.`)
}
