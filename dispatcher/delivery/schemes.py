"""Each request by the transport of its scheme."""

from __future__ import annotations

from dispatcher.delivery.mail import MailTransport
from dispatcher.delivery.mailbox import is_mail
from dispatcher.delivery.transport import Answer, Request, Transport


class BySchemes:
    """Mails and everything else."""

    def __init__(self, mail: MailTransport, others: Transport) -> None:
        self._mail = mail
        self._others = others

    async def send(self, request: Request) -> Answer:
        return await (self._mail if is_mail(request.url) else self._others).send(request)

    async def close(self) -> None:
        await self._mail.close()
        await self._others.close()
