// What no seed reaches, with the reason: a function as `FILE NAME`, and a whole file that is not even loaded as `FILE`.
type Unreached = { readonly why: string; readonly where: readonly string[] }

export const UNREACHED: readonly Unreached[] = []
