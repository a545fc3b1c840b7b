// Where a session was opened: its folder, the name of its environment, and files that may be read and not changed. How they are given, how
// `session.created` has them, and what a model is told of them. The files lie beside the log, by hash.
import { isAbsolute } from 'node:path'
import type { BlobRef, Frozen, Labels, Metadata } from '../kernel/content.ts'
import type { Description, Event } from '../kernel/event.ts'
import { shortened } from '../view/text.ts'
import { Fault } from '../kernel/failure.ts'
import { headOf } from '../riders/children/tree.ts'
import type { Blob, Store } from '../ports/store.ts'
import { type Checks, listOf, needed, text, within } from '../options.ts'
import { FILE_PART, type FilePart } from '../tools/core/file-part.ts'
import { readInput } from './input.ts'
import { labelsCheck, metadataCheck } from './metadata.ts'

export type Attachment = FilePart & { readonly name: string }

export type OriginOptions = {
  /** Default: the harness's own. */
  readonly environment?: string
  /** Files for the whole life of the session. A model is told of them, and reads them with `read`. */
  readonly attachments?: readonly Attachment[]
  /** The full path of the folder it works in, for `list({ folder })`. It changes nothing of what tools may do. */
  readonly folder?: string
  /** For your own code: tools, hooks, traces, results and children have it, at most 16 KB of JSON. The model does not see it. */
  readonly metadata?: Metadata
  /** For `list({ where })`: at most 16, such as `{ tenant: 'acme' }`. Children have them too. */
  readonly labels?: Labels
}

export const ORIGIN_OPTIONS: Checks<OriginOptions> = {
  metadata: metadataCheck,
  labels: labelsCheck,
  environment: text,
  attachments: listOf(within<Attachment>({ ...FILE_PART, name: needed(text) })),
  folder: text,
}

/** As `session.created` has it. */
export type Origin = Frozen<{ environment?: string; attachments?: readonly BlobRef[] } & Description>

const NAME_CHARS_MAX = 200
const FOLDER_CHARS_MAX = 4_096

export function originOf(options: OriginOptions): { readonly origin: Origin; readonly blobs: readonly Blob[] } {
  const { environment, attachments = [] } = options
  if (environment !== undefined) checkName('An environment', environment)
  for (const [i, { name }] of attachments.entries()) {
    checkName('An attachment', name)
    if (attachments.findIndex((other) => other.name === name) < i)
      throw new Fault('invalid_input', `Two attachments are called "${name}". Give each a name of its own.`)
  }
  const { parts, blobs } = readInput(attachments)
  const refs = parts.filter((part): part is BlobRef => part.type === 'blob')
  const named = { ...(environment === undefined ? {} : { environment }), ...descriptionIn(options) }
  return { origin: refs.length > 0 ? { ...named, attachments: refs } : named, blobs }
}

/**
 * Its session's own, as the log has it, but for what is said of it: an import may have forgotten that. The environment becomes a part
 * of the instructions, so an imported session has that of its agent here, and not the one that the file names.
 */
export async function readOrigin(store: Store, { id, first, imported, here }: Read): Promise<Origin> {
  const created = first ?? (await store.read(id, 0, 1)).events[0]
  if (created?.type !== 'session.created') return {}
  const { attachments, parent, fork } = created
  // A child that goes on from its parent's conversation is told of the same place.
  if (parent && fork) {
    const above = await headOf(store, fork.session)
    return readOrigin(store, { id: fork.session, imported: above.imported, here })
  }
  const environment = imported === undefined ? created.environment : await environmentAt(store, { id, imported, here })
  return { ...(environment === undefined ? {} : { environment }), ...(attachments ? { attachments } : {}) }
}

/** That of the host which opened it with messages, else that of its agent here. */
async function environmentAt(
  store: Store,
  { id, imported, here }: { readonly id: string; readonly imported: number; readonly here: string | null },
): Promise<string | undefined> {
  const [arrived] = (await store.read(id, imported - 1, 1)).events
  return (arrived?.type === 'session.imported' ? arrived.environment : undefined) ?? here ?? undefined
}

type Read = {
  readonly id: string
  /** The first event of its log, if that is in hand. */
  readonly first?: Event | undefined
  /** The event of its import, if there was one. */
  readonly imported: number | undefined
  /** The environment of its agent in this harness. */
  readonly here: string | null
}

/** Throws for what `originOf` would not have written. */
export function checkOrigin({ environment, attachments = [] }: Origin): void {
  if (environment !== undefined) checkName('An environment', environment)
  for (const { name } of attachments) if (name !== undefined) checkName('An attachment', name)
}

/** For the model: the same bytes in every run of a session. Empty when there is nothing to say. */
export function originText({ environment, attachments = [] }: Origin): string {
  const lines = environment === undefined ? [] : [`Environment: ${environment}`]
  if (attachments.length > 0) lines.push('Attached files (read-only; read one by its path):')
  for (const { name = 'a file', media, bytes, hash } of attachments)
    lines.push(`- ${name} (${media}, ${bytes} bytes): blob:${hash}`)
  return lines.join('\n')
}

/** What a host says of a session, as an event has it. */
export function descriptionIn({ folder, metadata, labels }: Frozen<Description>): Frozen<Description> {
  const said = metadata === undefined ? {} : { metadata }
  const listed = labels === undefined || Object.keys(labels).length === 0 ? {} : { labels: { ...labels } }
  return { ...folderIn(folder), ...said, ...listed }
}

function folderIn(folder: string | undefined): Pick<Origin, 'folder'> {
  if (folder === undefined) return {}
  // Half a character would come back from a file as another one.
  const odd = !isAbsolute(folder) || /[\0\p{Cs}]/u.test(folder)
  if (!odd && folder.length <= FOLDER_CHARS_MAX) return { folder }
  throw new Fault(
    'invalid_input',
    `${JSON.stringify(shortened(folder, 64))} is no folder to work in. Give its full path, of at most ${FOLDER_CHARS_MAX} characters.`,
  )
}

function checkName(what: string, name: unknown): void {
  const good = typeof name === 'string' && name.trim() !== '' && name.length <= NAME_CHARS_MAX && !/\p{Cc}/u.test(name)
  if (!good) throw new Fault('invalid_input', `${what} has a name: one line of 1 to ${NAME_CHARS_MAX} characters.`)
}
