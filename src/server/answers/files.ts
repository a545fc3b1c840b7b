// Bytes to download: a file that a session refers to, and a whole session. They are never shown by a browser in place: whatever they
// hold, they come as an attachment, without a type that could run. And a session that comes from such a file.
import type { ServerResponse } from 'node:http'
import { type Asked, cardOf, type Given, OWNER } from '../host.ts'
import { SAFE } from '../pages.ts'
import { Refused } from '../refusals.ts'
import type { OpenedAnswer } from '../wire.ts'

function download(response: ServerResponse, bytes: Uint8Array | string, name: string, media: string): null {
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

/** Only one that this session refers to: a hash alone is no permission. Its own type is a header for programs. */
export async function blob(asked: Asked): Promise<Given> {
  const { session } = await cardOf(asked)
  const { hash = '' } = asked.params
  const found = /^[0-9a-f]{64}$/.test(hash)
    ? await asked.host.harness.session(session, { stored: true }).blob({ hash })
    : null
  if (!found) throw new Refused(404, 'not_found', 'This session has no such file.')
  if (/^[\w.+-]+\/[\w.+-]+$/.test(found.media)) asked.response.setHeader('x-media-type', found.media)
  return download(asked.response, found.data, hash, 'application/octet-stream')
}

/** `jsonl`: one event a line. `json`: a file that can be imported. */
export async function exported(asked: Asked): Promise<Given> {
  const { session } = await cardOf(asked)
  const { format = 'jsonl' } = asked.query as { readonly format?: 'jsonl' | 'json' }
  const { store } = asked.host
  const { exportSession, readLog } = await import('../../replay.ts')
  const text =
    format === 'json'
      ? JSON.stringify(await exportSession(store, session))
      : (await readLog(store, session)).map((event) => `${JSON.stringify(event)}\n`).join('')
  const name = `${session.replace(/[^\w.-]/g, '_').slice(0, 100)}.${format}`
  return download(asked.response, text, name, 'application/octet-stream')
}

/** It works in the folder that this server says, whatever the file says; it is held, and belongs to who imported it. */
export async function imported({ host, body, principal }: Asked): Promise<Given> {
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
