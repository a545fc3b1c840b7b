// Addresses: which are public, how a URL is read, what a host pattern means, and what a name may stand for.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type AddressRules,
  checkedAddresses,
  hostMatcher,
  hostOf,
  addressKind,
  readUrl,
} from '../../src/tools/web/web-address.ts'
import { names } from './web.ts'

const rules = (table: Readonly<Record<string, readonly string[]>>, more: Partial<AddressRules> = {}): AddressRules => ({
  ports: new Set([80, 443]),
  isPrivate: () => false,
  resolve: names(table),
  ...more,
})

const find = (url: string, table: Readonly<Record<string, readonly string[]>>, more: Partial<AddressRules> = {}) =>
  checkedAddresses(readUrl(url), rules(table, more))

const PRIVATE = [
  '10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 127.0.0.1 127.255.255.254 100.64.0.1',
  '100.127.255.255 ::1 fc00::1 fdff::1 ::ffff:127.0.0.1 ::ffff:7f00:1 64:ff9b::10.0.0.1 0:0:0:0:0:ffff:c0a8:1',
].flatMap((line) => line.split(' '))
const FORBIDDEN = [
  '0.0.0.0 0.1.2.3 169.254.169.254 169.254.0.1 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255',
  '198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 100.100.100.200 168.63.129.16',
  ':: ::2 ::127.0.0.1 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:0:1234::1',
  '2001:20::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 4000::1 5f00::1 fe80::1 fe80::1%lo ::1%lo',
  'fec0::1 ff02::1 fd00:ec2::254 fd20:ce::254 ::ffff:0:127.0.0.1 localhost 127.1 0x7f000001 [::1]',
  '',
].flatMap((line) => line.split(' '))
const PUBLIC = [
  '1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 172.15.255.255',
  '172.32.0.0 192.167.255.255 192.169.0.0 223.255.255.255 2606:4700::1111 2a00:1450::1 ::ffff:8.8.8.8',
  '64:ff9b::808:808 2001:200::1 2001:4860:4860::8888',
].flatMap((line) => line.split(' '))

describe('addresses', () => {
  it('B-ADDRESS-1: the public ones are told from all others, in IPv4, in IPv6 and where IPv6 carries IPv4', () => {
    const kinds = (list: readonly string[]) => list.map((address) => `${address} ${addressKind(address)}`)
    expect(kinds(PRIVATE)).toEqual(PRIVATE.map((address) => `${address} private`))
    expect(kinds(FORBIDDEN)).toEqual(FORBIDDEN.map((address) => `${address} forbidden`))
    expect(kinds(PUBLIC)).toEqual(PUBLIC.map((address) => `${address} public`))
  })

  it('B-ADDRESS-1: however an IPv6 address is written, it is the same address', () => {
    const group = fc.oneof(fc.constantFrom(0, 0, 1, 0xffff, 0xfd00, 0x64, 0xff9b, 0x2001, 0x7f00), fc.nat(0xffff))
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const long = groups.map((one) => one.toString(16).padStart(4, '0').toUpperCase()).join(':')
        const short = hostOf(new URL(`http://[${long}]/`))
        const [g = 0, h = 0] = groups.slice(6)
        const dotted = `${groups
          .slice(0, 6)
          .map((one) => one.toString(16))
          .join(':')}:${g >> 8}.${g & 255}.${h >> 8}.${h & 255}`
        expect([addressKind(short), addressKind(dotted)]).toEqual([addressKind(long), addressKind(long)])
      }),
      { numRuns: 500 },
    )
  })

  it('B-ADDRESS-2: a URL is read once, as browsers read it, and without its fragment and last dot', () => {
    expect(readUrl('HTTP://ExAmPlE.org.:80/a/../b?q#f').href).toBe('http://example.org/b?q')
    expect(readUrl('http://0x7f.1/').hostname).toBe('127.0.0.1')
    expect(readUrl('http://１２７。0。0。1/').hostname).toBe('127.0.0.1')
    expect(readUrl('next', new URL('https://example.org/a/b')).href).toBe('https://example.org/a/next')
  })

  it('B-ADDRESS-2: what is no URL of the web, or has a name before its host, is refused', () => {
    for (const url of [
      '',
      'example.org',
      'file:///etc/passwd',
      'ftp://example.org',
      'javascript:1',
      'http://',
      'http://a..',
    ])
      expect(() => readUrl(url)).toThrow(expect.objectContaining({ kind: 'InvalidInput' }))
    for (const url of ['http://u@example.org', 'http://:p@example.org', 'http://example.org@127.0.0.1/'])
      expect(() => readUrl(url)).toThrow(expect.objectContaining({ kind: 'Denied' }))
  })

  it('B-ADDRESS-3: a pattern is one host, or all that is below one, from a dot on', () => {
    const matches = hostMatcher(['docs.example.org', '*.Example.COM.', 'bücher.example', '::1'], 'hosts')
    const yes = ['docs.example.org', 'a.example.com', 'a.b.example.com', 'xn--bcher-kva.example', '::1']
    const no = [
      'example.org',
      'evil-docs.example.org',
      'a.docs.example.org',
      'example.com',
      'evilexample.com',
      '.example.com',
      '',
    ]
    expect(yes.filter((host) => !matches(host))).toEqual([])
    expect(no.filter(matches)).toEqual([])
  })

  it('B-ADDRESS-4: a pattern that is not a host is refused at once', () => {
    for (const pattern of [
      '',
      '*',
      '*.',
      'a.*.org',
      'http://a.org',
      'a.org/x',
      'a.org:80',
      'u@a.org',
      '*.127.0.0.1',
      '[::1]:80',
      'a b',
    ])
      expect(() => hostMatcher([pattern], 'hosts')).toThrow(expect.objectContaining({ code: 'invalid_config' }))
  })

  it('B-ADDRESS-5: a host that has one address that is not public is refused whole', async () => {
    const table = {
      'good.test': ['1.1.1.1', '2606:4700::1111'],
      'mixed.test': ['1.1.1.1', '10.0.0.1'],
      'odd.test': ['nonsense'],
    }
    expect(await find('http://good.test/', table)).toEqual(['1.1.1.1', '2606:4700::1111'])
    for (const host of ['mixed.test', 'odd.test', '127.0.0.1', '[::1]', '2130706433'])
      await expect(find(`http://${host}/`, table)).rejects.toMatchObject({ kind: 'Denied' })
  })

  it('B-ADDRESS-6: a host that is named as private may be at a private address, and never at a forbidden one', async () => {
    const table = { 'wiki.corp': ['10.1.2.3'], 'evil.corp': ['169.254.169.254'], 'other.test': ['10.1.2.3'] }
    const more = { isPrivate: hostMatcher(['*.corp', '169.254.169.254'], 'privateHosts') }
    expect(await find('http://wiki.corp/', table, more)).toEqual(['10.1.2.3'])
    for (const host of ['evil.corp', '169.254.169.254', 'other.test'])
      await expect(find(`http://${host}/`, table, more)).rejects.toMatchObject({ kind: 'Denied' })
  })

  it('B-ADDRESS-7: only the ports that are allowed are connected to', async () => {
    const table = { 'good.test': ['1.1.1.1'] }
    for (const url of ['http://good.test:22/', 'https://good.test:8443/', 'http://good.test:0/'])
      await expect(find(url, table)).rejects.toMatchObject({ kind: 'Denied' })
    expect(await find('https://good.test:8443/', table, { ports: new Set([8443]) })).toEqual(['1.1.1.1'])
  })

  it('B-ADDRESS-8: a name that does not exist is not found, and a look-up that fails is trouble for now', async () => {
    await expect(find('http://nowhere.test/', {})).rejects.toMatchObject({ kind: 'NotFound' })
    await expect(find('http://empty.test/', { 'empty.test': [] })).rejects.toMatchObject({ kind: 'NotFound' })
    const resolve = () => Promise.reject(Object.assign(new Error('again'), { code: 'EAI_AGAIN' }))
    await expect(find('http://good.test/', {}, { resolve })).rejects.toMatchObject({ kind: 'Unavailable' })
  })
})
