// The network places that a tool may reach: parses URLs in one way, knows which addresses are public, and resolves
// names to addresses that are checked before anything connects. It connects to nothing itself.
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { Fault } from '../../kernel/failure.ts'
import { ToolFailure } from '../core/tool-output.ts'
import { shortenText } from '../../view/shown-text.ts'

/**
 * `private` addresses can be allowed for a named host. `forbidden` ones never: metadata services, link-local,
 * multicast, reserved, and invalid addresses.
 */
export type AddressKind = 'public' | 'private' | 'forbidden'

/** Returns all addresses of a name. They are checked, and no other address is connected to. */
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
  // In IPv6, only the range assigned to the internet.
  public: ['0.0.0.0/0', '2000::/3'],
  private: ['10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 127.0.0.0/8 100.64.0.0/10', '::1/128 fc00::/7'],
  forbidden: [
    // The first two here, and the first two of IPv6, are metadata services of clouds that lie within other networks or
    // look public.
    '100.100.100.200/32 168.63.129.16/32 0.0.0.0/8 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 ' +
      '198.51.100.0/24 203.0.113.0/24 224.0.0.0/3',
    // Then Teredo and other protocols, documentation, 6to4.
    'fd00:ec2::/32 fd20:ce::/32 2001::/23 2001:db8::/32 2002::/16 3fff::/20',
  ],
}
/**
 * Networks whose last 32 bits are the IPv4 address that is really meant: mapped addresses, and translation for
 * IPv6-only networks.
 */
const CARRIERS = ['::ffff:', '64:ff9b::']

/** In the order of the checks: forbidden networks lie within the others. */
const KINDS: readonly AddressKind[] = ['forbidden', 'private', 'public']
const LISTS = KINDS.map((kind) => ({ kind, list: networkList(kind) }))

export function addressKind(address: string): AddressKind {
  const version = isIP(address)
  // An address of a single interface (`%eth0`) is never public.
  if (version === 0 || address.includes('%')) return 'forbidden'
  return LISTS.find(({ list }) => list.check(address, version === 4 ? 'ipv4' : 'ipv6'))?.kind ?? 'forbidden'
}

/**
 * Parses a URL once, so that the checked object is the one that is used. Removes the fragment and a final dot of the
 * host.
 */
export function readUrl(text: string, from?: URL): URL {
  const url = URL.canParse(text, from?.href) ? new URL(text, from?.href) : null
  if (url === null)
    throw new ToolFailure('InvalidInput', 'This is not a URL. Give a whole one, such as https://example.org/page.')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new ToolFailure(
      'InvalidInput',
      `Only http and https can be fetched, not ${shortenText(url.protocol, HOST_CHARS_SHOWN_MAX)}`,
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

/** The addresses that may be connected to for this URL: all addresses of its host, each of them checked. */
export async function checkedAddresses(url: URL, rules: AddressRules): Promise<readonly string[]> {
  const host = hostOf(url)
  if (!rules.ports.has(portOf(url))) {
    throw new ToolFailure('Denied', `Port ${portOf(url)} is not fetched from, only ${[...rules.ports].join(', ')}.`)
  }
  const addresses = isIP(host) === 0 ? await resolveHost(host, rules.resolve) : [host]
  const known = rules.isPrivate(host)
  for (const address of addresses) {
    const kind = addressKind(address)
    if (kind === 'public' || (kind === 'private' && known)) continue
    // Do not name the address: internal addresses must not be revealed here.
    throw new ToolFailure(
      'Denied',
      `${shortenText(host, HOST_CHARS_SHOWN_MAX)} is not at a public address, so it is not fetched.`,
    )
  }
  return addresses
}

export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
}

/** The host without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/**
 * Returns a function that matches hosts. A pattern is a host, or `*.` and a domain for all hosts below it, but not
 * itself. Both sides are parsed as in URLs, and compared as a whole or from a dot on, never by a part of a name.
 */
export function hostMatcher(patterns: readonly string[], option: string): (host: string) => boolean {
  const exact = new Set<string>()
  const below: string[] = []
  for (const pattern of patterns) {
    const isWide = pattern.startsWith('*.')
    const host = canonicalHost(isWide ? pattern.slice(2) : pattern)
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

async function resolveHost(host: string, resolve: Resolve): Promise<readonly string[]> {
  try {
    const addresses = await resolve(host)
    if (addresses.length > 0) return addresses
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code !== 'ENOTFOUND')
      throw new ToolFailure(
        'Unavailable',
        `${shortenText(host, HOST_CHARS_SHOWN_MAX)} could not be looked up. Try again later.`,
      )
  }
  throw new ToolFailure('NotFound', `There is no host ${shortenText(host, HOST_CHARS_SHOWN_MAX)}.`)
}

function canonicalHost(host: string): string | null {
  // A host only: no port, no path, no user, no pattern.
  if (/[/\\?#@*\s%]/.test(host)) return null
  const bare = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  if (/\]?:\d*$/.test(bare) || !URL.canParse(`http://${bare}`)) return null
  return hostOf(new URL(`http://${bare}`)).replace(/\.$/, '')
}

function networkList(kind: AddressKind): BlockList {
  const list = new BlockList()
  const [v4, v6] = NETWORKS[kind].map((networks) => networks.split(' ').map((network) => network.split('/')))
  for (const [network = '', bits] of v4 ?? []) {
    list.addSubnet(network, Number(bits), 'ipv4')
    for (const carrier of CARRIERS) list.addSubnet(carrier + network, 96 + Number(bits), 'ipv6')
  }
  for (const [network = '', bits] of v6 ?? []) list.addSubnet(network, Number(bits), 'ipv6')
  return list
}
