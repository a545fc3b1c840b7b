import type { Recording } from './record-sqlite.ts'
export async function recordPostgres(_a: string, _b: number, _c: number): Promise<Recording> {
  throw new Error('later')
}
