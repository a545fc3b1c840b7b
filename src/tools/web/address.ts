// Which places of the network a tool may go to: one reading of a URL, which addresses are public, and names resolved to addresses
// that are checked before anything connects. It connects to nothing itself.
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { Fault } from '../../kernel/failure.ts'
import { ToolFailure } from '../core/output.ts'
import { shortened } from '../../view/text.ts'

/** `private` can be allowed for a named host. `forbidden` never: metadata services, link-local, multicast, reserved, no address. */
export type AddressKind = 'public' | 'private' | 'forbidden'

/** All addresses of a name. What it answers is checked, and only what it answered is connected to. */
export type Resolve = (host: string) => Promise<readonly string[]>

export type AddressRules = {
  readonly ports: ReadonlySet<number>
  /** Is this a host that may have private addresses? */
  readonly isPrivate: (host: string) => boolean
  readonly resolve: Resolve
}

const HOST_CHARS_SHOWN_MAX = 100

/** Networks by kind. The first list of each kind is IPv4, the second IPv6. */
const NETWORKS: Readonly<Record<AddressKind, readonly [v4: string, v6: string]>> = {
  // Of IPv6 only what is assigned for the internet.
  public: ['0.0.0.0/0', '2000::/3'],
  private: ['10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 127.0.0.0/8 100.64.0.0/10', '::1/128 fc00::/7'],
  forbidden: [
    // The first two, and the first two of IPv6, are metadata services of clouds that lie within other networks or look public.
    '100.100.100.200/32 168.63.129.16/32 0.0.0.0/8 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 ' +
      '198.51.100.0/24 203.0.113.0/24 224.0.0.0/3',
    // Then Teredo and other protocols, documentation, 6to4.
    'fd00:ec2::/32 fd20:ce::/32 2001::/23 2001:db8::/32 2002::/16 3fff::/20',
  ],
}
/** Networks whose last 32 bits are an IPv4 address that is what is really meant: mapped ones, and translation for IPv6-only nets. */
const CARRIERS = ['::ffff:', '64:ff9b::']

/** In the order they are asked: what is forbidden lies within the others. */
const KINDS: readonly AddressKind[] = ['forbidden', 'private', 'public']
const LISTS = KINDS.map((kind) => ({ kind, list: listOf(kind) }))

export function kindOf(address: string): AddressKind {
  const version = isIP(address)
  // An address of one interface only (`%eth0`) is never one of the internet.
  if (version === 0 || address.includes('%')) return 'forbidden'
  return LISTS.find(({ list }) => list.check(address, version === 4 ? 'ipv4' : 'ipv6'))?.kind ?? 'forbidden'
}

/** One reading for all: what is checked is the very object that is used. The fragment and a last dot of the host are gone. */
export function readUrl(text: string, from?: URL): URL {
  const url = URL.canParse(text, from?.href) ? new URL(text, from?.href) : null
  if (url === null)
    throw new ToolFailure('InvalidInput', 'This is not a URL. Give a whole one, such as https://example.org/page.')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new ToolFailure(
      'InvalidInput',
      `Only http and https can be fetched, not ${shortened(url.protocol, HOST_CHARS_SHOWN_MAX)}`,
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw new ToolFailure(
      'Denied',
      'A URL with a user name or a password is not fetched: what stands before "@" is no host.',
    )
  }
  url.hash = ''
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1)
  if (url.hostname.endsWith('.') || url.hostname === '') {
    throw new ToolFailure('InvalidInput', 'This URL has no valid host.')
  }
  return url
}

/** The addresses that may be connected to for this URL: all that its host has, and every one was checked. */
export async function addressesOf(url: URL, rules: AddressRules): Promise<readonly string[]> {
  const host = hostOf(url)
  if (!rules.ports.has(portOf(url))) {
    throw new ToolFailure('Denied', `Port ${portOf(url)} is not fetched from, only ${[...rules.ports].join(', ')}.`)
  }
  const addresses = isIP(host) === 0 ? await resolved(host, rules.resolve) : [host]
  const known = rules.isPrivate(host)
  for (const address of addresses) {
    const kind = kindOf(address)
    if (kind === 'public' || (kind === 'private' && known)) continue
    // Not the address itself: what names stand for inside is nothing to learn here.
    throw new ToolFailure(
      'Denied',
      `${shortened(host, HOST_CHARS_SHOWN_MAX)} is not at a public address, so it is not fetched.`,
    )
  }
  return addresses
}

export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
}

/** Without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/**
 * Does a host match one of these? A pattern is a host, or `*.` and a domain for all below it, but not itself. Both sides are read
 * as URLs read hosts, and compared whole or from a dot on: never by a piece of a name.
 */
export function hostMatcher(patterns: readonly string[], option: string): (host: string) => boolean {
  const exact = new Set<string>()
  const below: string[] = []
  for (const pattern of patterns) {
    const isWide = pattern.startsWith('*.')
    const host = canonical(isWide ? pattern.slice(2) : pattern)
    if (host === null || (isWide && isIP(host) !== 0)) {
      throw new Fault(
        'invalid_config',
        `"${pattern}" in ${option} is not a host. Write "docs.example.org", or "*.example.org" for all below it.`,
      )
    }
    if (isWide) below.push(`.${host}`)
    else exact.add(host)
  }
  return (host) => exact.has(host) || below.some((end) => host.length > end.length && host.endsWith(end))
}

export const systemResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

async function resolved(host: string, resolve: Resolve): Promise<readonly string[]> {
  try {
    const addresses = await resolve(host)
    if (addresses.length > 0) return addresses
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code !== 'ENOTFOUND')
      throw new ToolFailure(
        'Unavailable',
        `${shortened(host, HOST_CHARS_SHOWN_MAX)} could not be looked up. Try again later.`,
      )
  }
  throw new ToolFailure('NotFound', `There is no host ${shortened(host, HOST_CHARS_SHOWN_MAX)}.`)
}

function canonical(host: string): string | null {
  // A host and nothing else: no port, no path, no user, no pattern.
  if (/[/\\?#@*\s%]/.test(host)) return null
  const bare = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  if (/\]?:\d*$/.test(bare) || !URL.canParse(`http://${bare}`)) return null
  return hostOf(new URL(`http://${bare}`)).replace(/\.$/, '')
}

function listOf(kind: AddressKind): BlockList {
  const list = new BlockList()
  const [v4, v6] = NETWORKS[kind].map((networks) => networks.split(' ').map((network) => network.split('/')))
  for (const [network = '', bits] of v4 ?? []) {
    list.addSubnet(network, Number(bits), 'ipv4')
    for (const carrier of CARRIERS) list.addSubnet(carrier + network, 96 + Number(bits), 'ipv6')
  }
  for (const [network = '', bits] of v6 ?? []) list.addSubnet(network, Number(bits), 'ipv6')
  return list
}
