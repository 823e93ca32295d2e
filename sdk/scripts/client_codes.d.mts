export const clientCodes: { code: string; title: string; retryable: boolean; advice: string }[];
