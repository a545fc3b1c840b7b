// A store over TLS, to a real server that has a certificate of its own: what is believed, and what is said of what is not.
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { create, seqs } from '../contract/fixture.ts'
import { account, noPostgres, PASSWORD } from './server.ts'
import { ownServer } from './stage.ts'

/** A certificate that nobody signed, for this address, and its key as the server wants it. */
function certificate(address: string): { readonly cert: string; readonly key: string } {
  const folder = mkdtempSync(join(tmpdir(), 'terret-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [cert, key] = [join(folder, 'server.crt'), join(folder, 'server.key')]
  const subject = ['-subj', '/CN=terret', '-addext', `subjectAltName=IP:${address}`]
  const files = ['-nodes', '-days', '2', '-out', cert, '-keyout', key]
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', ...files, ...subject],
    {
      stdio: 'pipe',
    },
  )
  chmodSync(folder, 0o755)
  chmodSync(key, 0o600)
  if (account) for (const file of [cert, key]) chownSync(file, account.uid, account.gid)
  return { cert, key }
}

const serverWith = ({ cert, key }: ReturnType<typeof certificate>) =>
  ownServer({ settings: { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key } })

describe.skipIf(noPostgres)('over TLS', () => {
  it('B-PGNET-28: a store works with a certificate that is believed, and no part of it in the clear', async () => {
    const own = certificate('127.0.0.1')
    const server = await serverWith(own)
    for (const how of [`sslmode=verify-full&sslrootcert=${own.cert}`, `sslmode=require&sslrootcert=${own.cert}`]) {
      const store = postgres({ url: `${server.url()}?${how}`, patienceMs: 0 })
      onTestFinished(() => store.close())
      const session = `s-${how.length}`
      await create(store, session)
      expect(await seqs(store, session)).toEqual([1])
      const open = await server.query<{ ssl: boolean }>(
        "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name like 'terret %'",
      )
      expect(open.length).toBeGreaterThan(0)
      expect(open.every(({ ssl }) => ssl)).toBe(true)
    }
  })

  it('B-PGNET-28: a certificate that is not believed, another one, one for another host and a server without TLS are one sentence each, at once, without the password', async () => {
    const [own, other, elsewhere] = [certificate('127.0.0.1'), certificate('127.0.0.1'), certificate('127.0.0.2')]
    const [right, moved, bare] = [await serverWith(own), await serverWith(elsewhere), await ownServer()]
    for (const [url, why] of [
      [`${right.url()}?sslmode=verify-full`, 'self-signed'],
      [`${right.url()}?sslmode=require`, 'self-signed'],
      [`${right.url()}?sslmode=verify-full&sslrootcert=${other.cert}`, 'self-signed'],
      [`${moved.url()}?sslmode=verify-full&sslrootcert=${elsewhere.cert}`, '127.0.0.1'],
      [`${right.url()}?sslmode=prefer`, 'self-signed'],
      [`${bare.url()}?sslmode=require`, 'does not support SSL'],
    ] as const) {
      const store = postgres(url)
      const error = await store.open().catch((thrown: unknown) => thrown)
      await store.close()
      expect(error).toBeInstanceOf(Fault)
      const { code, message, detail } = error as Fault
      expect([code, message]).toEqual(['invalid_config', expect.stringContaining(why)])
      expect(message).toMatch(/^No safe connection to the server at [^\n]+\. Check sslmode and its certificates\.$/)
      expect(`${message} ${detail}`).not.toContain(PASSWORD)
    }
  })
})
