// Reading JSON that strangers wrote: what has the wrong type is as good as missing. Nothing here knows a protocol's meaning.
import type { Json } from '../../../kernel/content.ts'

export type Fields = { readonly [key: string]: Json | undefined }

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
