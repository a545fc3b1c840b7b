// Loads Restate's SDK, an optional peer dependency, and refuses a version that would not work on this Node.
import type * as sdk from '@restatedev/restate-sdk'
import { createRequire } from 'node:module'
import { Fault } from '../kernel/failure.ts'

export type Sdk = typeof sdk

const PACKAGE = '@restatedev/restate-sdk'
/** The oldest version that was tested. */
const OLDEST = [1, 12] as const
/**
 * From this version on the SDK calls Promise.withResolvers, which Node 20 lacks: a wake would hang without an answer.
 */
const NEEDS_RESOLVERS = [1, 15] as const

export async function loadSdk(): Promise<Sdk> {
  const loaded = await import('@restatedev/restate-sdk').catch(throwSdkMissing)
  const manifest: unknown = createRequire(import.meta.url)(`${PACKAGE}/package.json`)
  const version = (manifest as { readonly version?: unknown }).version
  const wrong = whySdkUnusable(String(version), 'withResolvers' in Promise)
  if (wrong !== null) throw new Fault('invalid_config', wrong)
  return loaded
}

/** Says what is wrong with a version and what to install; null if it works here. */
export function whySdkUnusable(version: string, hasResolvers: boolean): string | null {
  const [major = Number.NaN, minor = Number.NaN] = version.split('.', 2).map(Number)
  const before = (limit: readonly [number, number]): boolean =>
    major < limit[0] || (major === limit[0] && minor < limit[1])
  if (major === OLDEST[0] && !before(OLDEST) && (hasResolvers || before(NEEDS_RESOLVERS))) return null
  const install = hasResolvers ? `npm install ${PACKAGE}@1` : `npm install ${PACKAGE}@1.14`
  const why =
    major === OLDEST[0] && !before(NEEDS_RESOLVERS)
      ? 'needs Promise.withResolvers, which this Node lacks'
      : 'is not supported'
  return `terret/restate cannot use ${PACKAGE} ${version}: it ${why}. Run: ${install}`
}

function throwSdkMissing(error: unknown): never {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error
  const range = 'withResolvers' in Promise ? '1' : '1.14'
  throw new Fault('invalid_config', `terret/restate needs a package of its own. Run: npm install ${PACKAGE}@${range}`)
}
