"""Covariates that are fetched or computed by functions, only for the rows that need them."""

from adacos.providers.calling import Provider, ProviderCall, ProviderRequest
from adacos.providers.running import ProvidedResult, provide

__all__ = ["ProvidedResult", "Provider", "ProviderCall", "ProviderRequest", "provide"]
