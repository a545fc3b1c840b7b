// The handlers that send and take files: a file that a session refers to, a whole session, and an imported session.
// Downloads are attachments with a harmless media type, so that a browser never runs them.
import type { ServerResponse } from 'node:http'
import { type ApiRequest, requireCard, type ApiAnswer, OWNER } from '../server-host.ts'
import { SAFE } from '../inspector-files.ts'
import { HttpRefusal } from '../refusals.ts'
import type { OpenedAnswer } from '../wire.ts'

function sendDownload(response: ServerResponse, bytes: Uint8Array | string, name: string, media: string): null {
  response
    .writeHead(200, {
      ...SAFE,
      'content-type': media,
      'content-length': Buffer.byteLength(bytes),
      'content-disposition': `attachment; filename="${name}"`,
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
      'cache-control': 'private, no-store',
    })
    .end(bytes)
  return null
}

/**
 * Sends only files that this session refers to: knowing a hash grants nothing. The file's own media type is in a header
 * for programs.
 */
export async function handleBlob(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const { hash = '' } = asked.params
  const found = /^[0-9a-f]{64}$/.test(hash)
    ? await asked.host.harness.session(session, { stored: true }).blob({ hash })
    : null
  if (!found) throw new HttpRefusal(404, 'not_found', 'This session has no such file.')
  if (/^[\w.+-]+\/[\w.+-]+$/.test(found.media)) asked.response.setHeader('x-media-type', found.media)
  return sendDownload(asked.response, found.data, hash, 'application/octet-stream')
}

/** `jsonl`: one event per line. `json`: a file that can be imported. */
export async function handleExport(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const { format = 'jsonl' } = asked.query as { readonly format?: 'jsonl' | 'json' }
  const { store } = asked.host
  const { exportSession, portableText, readLog } = await import('../../replay.ts')
  const text =
    format === 'json'
      ? portableText(await exportSession(store, session))
      : (await readLog(store, session)).map((event) => `${JSON.stringify(event)}\n`).join('')
  const name = `${session.replace(/[^\w.-]/g, '_').slice(0, 100)}.${format}`
  return sendDownload(asked.response, text, name, 'application/octet-stream')
}

/**
 * The server chooses the folder, whatever the file says. The imported session is held and belongs to the principal that
 * imported it.
 */
export async function handleImport({ host, body, principal }: ApiRequest): Promise<ApiAnswer> {
  const { importSession } = await import('../../replay.ts')
  const { folder } = await host.begin({ by: principal })
  const where = {
    program: host.program,
    ...(folder === undefined ? {} : { folder }),
    labels: { [OWNER]: principal.name },
  }
  const card = await importSession(host.store, body, where)
  return { json: { session: card.session, receipt: null } satisfies OpenedAnswer }
}
