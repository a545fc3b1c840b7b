// Loads a policy from a JSON file and makes its paths absolute. The meaning of a policy is in policy.ts.
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Fault } from '../../kernel/failure.ts'
import { parsePolicy, type Policy } from './policy.ts'
import { isObject } from '../../view/untrusted-json.ts'

/**
 * Relative `writeRoots` and `base` start from the folder of the file. Without `base`, so do relative paths of calls.
 */
export function loadPolicy(file: string): Policy {
  const folder = dirname(resolve(file))
  const value = readPolicyJson(file)
  if (!isObject(value)) return parsePolicy(value)
  const { writeRoots, base, ...rest } = value as Record<string, unknown>
  if (writeRoots === undefined && base === undefined) return parsePolicy(rest)
  const whole = (path: unknown): unknown => (typeof path === 'string' ? resolve(folder, path) : path)
  const roots = Array.isArray(writeRoots) ? writeRoots.map(whole) : writeRoots
  return parsePolicy({ ...rest, writeRoots: roots, base: whole(base ?? '.') })
}

function readPolicyJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it cannot be read'
    throw new Fault('invalid_config', `The policy file ${file} cannot be used: ${why}`)
  }
}
